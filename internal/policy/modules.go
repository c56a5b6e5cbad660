package policy

import (
	"time"

	"github.com/tailscale/hujson"
)

// Bounds of how long a check of a permission module may take for one call.
const (
	DefaultModuleTime = 10 * time.Millisecond
	MaxModuleTime     = time.Second
)

// Modules is the document's "modules": what becomes of calls while permission
// modules cannot say anything of them.
type Modules struct {
	// OnFailure is Ask or Deny: what becomes of a call of which a check could say
	// nothing.
	OnFailure Action
	// CallTime is how much of a processor's time a check may take for one call.
	CallTime time.Duration
	// Strict: while a module does not load, nothing is allowed.
	Strict bool
}

// Modules returns what the document says of permission modules.
func (s *Snapshot) Modules() Modules { return s.modules }

// TrustsProject says whether the fleet layer trusts the project of who: whether
// its layers may loosen and its modules run.
func (s *Snapshot) TrustsProject(who Who) bool { return s.trustsProject(who) }

// defaultModules are the settings of a document that says nothing of modules.
var defaultModules = Modules{OnFailure: Ask, CallTime: DefaultModuleTime}

// modules reads "modules".
func (d *decoder) modules(v hujson.Value) {
	d.object(v, "modules",
		field{"onFailure", func(v hujson.Value) {
			if s, ok := d.oneOf(v, "onFailure", []string{Ask.String(), Deny.String()}); ok {
				d.s.modules.OnFailure, _ = ParseAction(s)
			}
		}},
		field{"callTime", func(v hujson.Value) { d.duration(v, "callTime", MaxModuleTime, &d.s.modules.CallTime) }},
		field{"strict", func(v hujson.Value) { d.boolean(v, "strict", &d.s.modules.Strict) }},
	)
}

// With is a ruling and one entry more, of something that only tightens: an entry
// that asks or denies. What denies stays, and a ruling of nothing goes on to
// refuse. The entry is reported behind those of the rules.
func (r Ruling) With(e Entry) Ruling {
	if r.Action == None || e.Action == Allow {
		return r
	}
	r.Entries = append(r.Entries[:len(r.Entries):len(r.Entries)], e)
	r.settle()
	return r
}
