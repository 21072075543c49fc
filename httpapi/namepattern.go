package httpapi

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// maxPattern bounds a regular expression that a request sends, in bytes.
	maxPattern = 256
	// maxProgram bounds what it compiles to, in instructions: matching takes time in
	// proportion to that too, and a few bytes such as `{1000}` make many. Patterns without
	// such counts have fewer.
	maxProgram = 1000
	// namesAtOnce is how many names are matched between two looks at the clock.
	namesAtOnce = 256
)

// namePattern selects names by a regular expression; nil selects all. The syntax is RE2's,
// so a name takes linear time, and all of them together as long as a read may wait. It is
// for one request.
type namePattern struct {
	re          *regexp.Regexp
	param, text string
	until       time.Time
	matched     int
	late        bool
}

// namePattern compiles the parameter called name, nil when it is empty.
func (r *request) namePattern(name string) (*namePattern, error) {
	text := r.optional(name, "")
	if text == "" {
		return nil, nil
	}
	if len(text) > maxPattern {
		return nil, registry.Invalid(name, text, "is too long for a pattern")
	}
	if programSize(text) > maxProgram {
		return nil, registry.Invalid(name, text, "repeats too much for a pattern")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return nil, registry.Invalid(name, text, "is no regular expression: "+reason)
	}
	return &namePattern{re: re, param: name, text: text, until: r.start.Add(r.srv.opts.ReadTimeout)}, nil
}

// programSize is the number of instructions of an expression, 0 for one that is none.
func programSize(text string) int {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// matches tells whether a name is selected; when the time is over none is.
func (p *namePattern) matches(name string) bool {
	if p == nil {
		return true
	}
	if p.matched%namesAtOnce == 0 && !p.late {
		p.late = time.Now().After(p.until)
	}
	p.matched++
	return !p.late && p.re.MatchString(name)
}

// err tells that the time was over before all names were matched.
func (p *namePattern) err() error {
	if p == nil || !p.late {
		return nil
	}
	return registry.Invalid(p.param, p.text, "takes too long on so many names: a simpler pattern is needed")
}
