package arrows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/rollcall-io/rollcall"

// allowed lists, for each package of the module, the packages of the module that it may
// import in code that is not a test. "raft" among them stands for hashicorp/raft.
var allowed = map[string][]string{
	"registry":             {},
	"internal/wire":        {"registry", "internal/wire/peerpb"},
	"internal/wire/peerpb": {},
	"fsm":                  {"registry", "internal/wire", "raft"},
	"raftnode":             {"registry", "internal/wire", "internal/wire/peerpb", "raft", "raftnode/..."},
	"health":               {"registry", "health/..."},
	"health/probe":         {"registry"},
	"auth":                 {"registry"},
	"httpapi":              {"registry", "auth", "httpapi/..."},
	"push":                 {"registry"},
	"internal/app":         {"registry", "fsm", "raftnode", "health", "httpapi", "auth", "push"},
	"internal/clustertest": {"registry", "internal/app", "internal/loopback", "raft"},
	"internal/arrows":      {},
	"client":               {},
	"client/fake":          {},
	"client/httprr":        {"client"},
	"client/grpcresolver":  {"client"},
	"examples/provider":    {"client"},
	"examples/consumer":    {"client", "client/httprr"},
	"examples/proxy":       {"client", "client/httprr"},
	"test/e2e":             {"test/e2e/nodes", "test/e2e/netns"},
	"test/e2e/netns":       {},
	"test/e2e/nodes":       {"internal/loopback"},
	"internal/loopback":    {},
	"test/field":           {"internal/clustertest"},
	"test/faults":          {"test/faults/figures"},
	"test/faults/figures":  {},
	"internal/bench":       {},
	"cmd/rollcall":         {"internal/app", "internal/bench"},
}

// pureStd is all that the domain may use of the standard library.
var pureStd = []string{"cmp", "errors", "fmt", "maps", "math", "net/netip", "slices", "strconv", "strings", "time", "unicode/utf8"}

// pkg is a package with its imports, both without the module's prefix.
type pkg struct {
	path    string
	imports []string
}

// violations returns a line for each import that the table does not allow.
func violations(pkgs []pkg) []string {
	var bad []string
	for _, p := range pkgs {
		may, known := rules(p.path)
		if !known {
			bad = append(bad, p.path+": unknown package: give it a row in the table")
			continue
		}
		for _, imp := range p.imports {
			if why := judge(p.path, may, imp); why != "" {
				bad = append(bad, fmt.Sprintf("%s imports %s: %s", p.path, imp, why))
			}
		}
	}
	return bad
}

func rules(path string) (may []string, known bool) {
	if may, known = allowed[path]; known {
		return may, true
	}
	// A sub-package that names a thing follows its parent, as long as that allows it.
	parent, _, _ := strings.Cut(path, "/")
	if may, known = allowed[parent]; known && slices.Contains(may, parent+"/...") {
		return may, true
	}
	return nil, false
}

func judge(path string, may []string, imp string) string {
	inside, ours := strings.CutPrefix(imp, module+"/")
	switch {
	case ours && !permits(may, inside):
		return "not among its arrows"
	case strings.HasPrefix(imp, "github.com/hashicorp/raft") && !slices.Contains(may, "raft"):
		return "only fsm, raftnode and internal/clustertest touch the Raft library"
	case path == "registry" && !ours && !slices.Contains(pureStd, imp):
		return "the domain uses a few pure packages of the standard library only"
	}
	return ""
}

func permits(may []string, inside string) bool {
	return slices.ContainsFunc(may, func(m string) bool {
		tree, isTree := strings.CutSuffix(m, "/...")
		return m == inside || isTree && strings.HasPrefix(inside, tree+"/")
	})
}

func TestImports_FollowTheTable(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports, Dir: "../.."}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []pkg
	for _, l := range loaded {
		p := pkg{path: strings.TrimPrefix(l.PkgPath, module+"/")}
		for imp := range l.Imports {
			p.imports = append(p.imports, imp)
		}
		slices.Sort(p.imports)
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 3 {
		t.Fatalf("only %d packages found", len(pkgs))
	}
	for _, line := range violations(pkgs) {
		t.Error(line)
	}
}

func TestImports_PlantedOnesAreFound(t *testing.T) {
	for _, planted := range []pkg{
		{"registry", []string{"sync"}},
		{"registry", []string{module + "/fsm"}},
		{"health", []string{module + "/fsm"}},
		{"health", []string{"github.com/hashicorp/raft"}},
		{"httpapi", []string{module + "/raftnode"}},
		{"httpapi", []string{module + "/internal/wire"}},
		{"fsm", []string{module + "/raftnode/mux"}},
		{"cmd/rollcall", []string{module + "/fsm"}},
		{"util", nil},
		{"fsm/common", nil},
	} {
		if len(violations([]pkg{planted})) != 1 {
			t.Errorf("%s importing %v was not refused", planted.path, planted.imports)
		}
	}
	if bad := violations([]pkg{{"raftnode/mux", []string{"net", module + "/registry"}}}); bad != nil {
		t.Errorf("a sub-package that follows its parent was refused: %v", bad)
	}
}
