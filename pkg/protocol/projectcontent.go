package protocol

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What a project has of its own as one text, which the digest is of: without
// modules the policy's own, as it always was. With modules it begins with a byte
// that no policy can begin with, since a policy is UTF-8, so no policy has the digest of
// modules. Then come netstrings, "<length>:<bytes>,": the form's name, the policy,
// and name, code and error of each module.
const (
	contentMark = "\xff"
	contentForm = "assent-project-1"
)

// ProjectContent is the text of policy and modules that ProjectDigest is of, and
// that gates keep.
func ProjectContent(policy string, modules ...ProjectModule) string {
	if len(modules) == 0 {
		return policy
	}
	var b strings.Builder
	b.WriteString(contentMark)
	netstring := func(s string) {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
		b.WriteByte(',')
	}
	netstring(contentForm)
	netstring(policy)
	for _, m := range modules {
		netstring(m.Name)
		netstring(m.Code)
		netstring(m.Error)
	}
	return b.String()
}

// ReadProjectContent takes apart what ProjectContent has put together, and checks
// it as a ProjectUpload is checked.
func ReadProjectContent(content string) (policy string, modules []ProjectModule, err error) {
	rest, marked := strings.CutPrefix(content, contentMark)
	if !marked {
		return content, nil, checkProject(content, nil)
	}
	parts, err := netstrings(rest)
	if err != nil {
		return "", nil, err
	}
	// At least one module: without any there is another form.
	if len(parts) < 5 || len(parts)%3 != 2 || parts[0] != contentForm {
		return "", nil, fmt.Errorf("%w: this is no policy with modules", ErrMalformed)
	}
	for m := parts[2:]; len(m) > 0; m = m[3:] {
		modules = append(modules, ProjectModule{Name: m[0], Code: m[1], Error: m[2]})
	}
	return parts[1], modules, checkProject(parts[1], modules)
}

func netstrings(s string) (out []string, err error) {
	for s != "" {
		if len(out) > 2+3*MaxProjectModules {
			return nil, fmt.Errorf("%w: more than %d modules", ErrTooLarge, MaxProjectModules)
		}
		length, rest, ok := strings.Cut(s, ":")
		n, err := strconv.Atoi(length)
		// Only the form that is written: one text, one digest.
		if !ok || err != nil || n < 0 || strconv.Itoa(n) != length || n >= len(rest) || rest[n] != ',' {
			return nil, fmt.Errorf("%w: a part is cut short", ErrMalformed)
		}
		out, s = append(out, rest[:n]), rest[n+1:]
	}
	return out, nil
}

var moduleName = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\z`)

func checkProject(policy string, modules []ProjectModule) error {
	if len(policy) > MaxProjectPolicy {
		return fmt.Errorf("%w: the project's policy has %d bytes, the limit is %d", ErrTooLarge, len(policy), MaxProjectPolicy)
	}
	if len(modules) > MaxProjectModules {
		return fmt.Errorf("%w: the project has %d modules, the limit is %d", ErrTooLarge, len(modules), MaxProjectModules)
	}
	code, names := 0, map[string]bool{}
	for _, m := range modules {
		if err := m.check(); err != nil {
			return err
		}
		if code += len(m.Code); code > MaxProjectCode {
			return fmt.Errorf("%w: the project's modules have more than %d bytes", ErrTooLarge, MaxProjectCode)
		}
		if m.Code != "" && names[m.Name] {
			return fmt.Errorf("%w: two modules %q", ErrField, m.Name)
		}
		names[m.Name] = true
	}
	return nil
}

func (m ProjectModule) check() error {
	switch {
	case (m.Code == "") == (m.Error == ""):
		return fmt.Errorf("%w: module %q needs code, or an error in its place", ErrField, clip(m.Name, 80))
	// What does not load may be called anything.
	case m.Code != "" && !moduleName.MatchString(m.Name):
		return fmt.Errorf("%w: module %q: want a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -", ErrField, clip(m.Name, 80))
	case !utf8.ValidString(m.Code):
		return fmt.Errorf("%w: module %q is not UTF-8", ErrField, clip(m.Name, 80))
	}
	return first(name("module", m.Name), bounded("error", m.Error, MaxReason))
}
