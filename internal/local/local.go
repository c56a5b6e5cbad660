// Package local finds what `assent up` left for the other commands on the same
// machine: the address of its NATS and the credentials of each role.
package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/pkg/protocol"
)

// FileName is the local default's name, in a store and in the configuration
// folder of its owner.
const FileName = "local.json"

// Errors of Load.
var (
	// ErrNone: there is no local default at the path.
	ErrNone = errors.New("no local default")
	// ErrUntrusted: the file, or a folder above it, could have been written by
	// somebody else.
	ErrUntrusted = errors.New("local default cannot be trusted")
)

// Default is what `assent up` writes when it is ready.
type Default struct {
	NATS  string                   `json:"nats"`
	Node  string                   `json:"node"`
	Store string                   `json:"store"`
	Web   string                   `json:"web,omitempty"`
	Creds map[protocol.Role]string `json:"creds"`
	// Names are the names that the credentials above carry.
	Names map[protocol.Role]string `json:"names,omitempty"`
}

// Load reads the local default at path. It refuses a file that others may read
// or write, or that belongs to another user: a false default leads to a false
// gate, and a false gate allows everything.
func Load(path string) (Default, error) {
	b, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default{}, fmt.Errorf("%w at %s: start `assent up`, or name a server with --nats and --creds", ErrNone, path)
	}
	if err != nil {
		return Default{}, err
	}
	var d Default
	if err := json.Unmarshal(b, &d); err != nil {
		return Default{}, fmt.Errorf("reading local default %s: %w: start `assent up` again", path, jsonwords.Of(err))
	}
	if d.NATS == "" || !protocol.ValidToken(d.Node) {
		return Default{}, fmt.Errorf("reading local default %s: nats or node is missing: start `assent up` again", path)
	}
	return d, nil
}

// readPrivate reads the file that it has looked at: the open one, so that no
// other can be put in its place between the look and the reading.
func readPrivate(path string) ([]byte, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return nil, fmt.Errorf("reading local default: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("looking at local default: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is no regular file", ErrUntrusted, path)
	}
	if err := private(path, info); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("reading local default: %w", err)
	}
	return b, nil
}

// maxBytes bounds what is read of a local default.
const maxBytes = 1 << 20

// Save writes the local default at path, mode 0600, in one step: a reader sees
// the old one or the new one.
func (d Default) Save(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making folder for local default: %w", err)
	}
	b, err := json.Marshal(d, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encoding local default: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".local-*")
	if err != nil {
		return fmt.Errorf("writing local default: %w", err)
	}
	defer os.Remove(f.Name())
	_, werr := f.Write(append(b, '\n'))
	if err := errors.Join(werr, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing local default: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("putting local default in place: %w", err)
	}
	return nil
}

// Path is where the commands of the person at this machine look, by the
// environment's HOME and XDG_CONFIG_HOME.
func Path(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "assent", FileName), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "assent", FileName), nil
	}
	return TrustedPath()
}

// TrustedPath is where `assent hook` looks: the home folder that the system
// knows for this user. A project's settings can set the environment of a hook,
// HOME included, and point it at a gate of their own.
func TrustedPath() (string, error) {
	home, err := SystemHome()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".config", "assent", FileName), nil
}

// SystemHome is the home folder that the system knows for this user, whatever
// the environment says.
func SystemHome() (string, error) { return systemHome(os.Getuid()) }

// UserName is the name that the system knows for this user, "" if it knows none.
func UserName() string {
	if runtime.GOOS != "linux" {
		if u, err := user.Current(); err == nil {
			return u.Username
		}
		return ""
	}
	fields, err := passwdEntry(os.Getuid())
	if err != nil {
		return ""
	}
	return fields[0]
}

// systemHome reads the user database itself on Linux: os/user answers from the
// environment in a static binary.
func systemHome(uid int) (string, error) {
	if runtime.GOOS != "linux" {
		u, err := user.Current()
		if err != nil {
			return "", fmt.Errorf("looking up home folder: %w", err)
		}
		return u.HomeDir, nil
	}
	fields, err := passwdEntry(uid)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(fields[5]) {
		return "", fmt.Errorf("user %d has no home folder in /etc/passwd: name the local default with --local FILE", uid)
	}
	return fields[5], nil
}

// passwdEntry is the line of uid in the user database, at least six fields.
func passwdEntry(uid int) ([]string, error) {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return nil, fmt.Errorf("looking up user %d: %w", uid, err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if fields := strings.Split(sc.Text(), ":"); len(fields) >= 6 && fields[2] == strconv.Itoa(uid) {
			return fields, nil
		}
	}
	return nil, fmt.Errorf("user %d is not in /etc/passwd: name the local default with --local FILE", uid)
}
