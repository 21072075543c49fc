package arrows

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// orderFree marks, in a comment on the line above or on the line itself, a range over a
// map whose order cannot reach state, a result or an identifier. It is followed by the
// reason.
const orderFree = "order-free:"

// impure reports what would let two replicas differ inside one function: a clock, a
// random number, a goroutine, a range over a map.
type impure struct {
	fset  *token.FileSet
	info  *types.Info
	files map[string]map[int]bool // lines with an orderFree mark
	found []string
}

func newImpure(fset *token.FileSet, info *types.Info, files []*ast.File) *impure {
	m := &impure{fset: fset, info: info, files: map[string]map[int]bool{}}
	for _, f := range files {
		lines := map[int]bool{}
		for _, g := range f.Comments {
			for _, c := range g.List {
				if strings.Contains(c.Text, orderFree) {
					lines[fset.Position(g.End()).Line] = true
				}
			}
		}
		m.files[fset.Position(f.Pos()).Filename] = lines
	}
	return m
}

func (m *impure) report(n ast.Node, what string) {
	m.found = append(m.found, fmt.Sprintf("%s: %s", m.fset.Position(n.Pos()), what))
}

func (m *impure) inspect(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		m.report(n, "a goroutine")
	case *ast.SelectStmt:
		m.report(n, "a select, whose choice is random")
	case *ast.RangeStmt:
		if _, isMap := m.info.TypeOf(n.X).Underlying().(*types.Map); isMap && !m.marked(n) {
			m.report(n, "a range over a map without the mark "+orderFree)
		}
	case *ast.SelectorExpr:
		if obj := m.info.Uses[n.Sel]; obj != nil && obj.Pkg() != nil && forbidden(obj.Pkg().Path(), obj.Name()) {
			m.report(n, "uses "+obj.Pkg().Path()+"."+obj.Name())
		}
	}
	return true
}

func (m *impure) marked(n ast.Node) bool {
	p := m.fset.Position(n.Pos())
	lines := m.files[p.Filename]
	return lines[p.Line] || lines[p.Line-1]
}

func forbidden(pkg, name string) bool {
	switch pkg {
	case "time":
		switch name {
		case "Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep":
			return true
		}
	case "math/rand", "math/rand/v2", "crypto/rand", "hash/maphash", "os":
		return true
	}
	return false
}

func load(t *testing.T, path string) *packages.Package {
	t.Helper()
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: "../.."}, "./"+path)
	if err != nil || len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		t.Fatalf("load %s: %v %v", path, err, loaded)
	}
	return loaded[0]
}

func TestDeterminism_Registry(t *testing.T) {
	p := load(t, "registry")
	m := newImpure(p.Fset, p.TypesInfo, p.Syntax)
	for _, f := range p.Syntax {
		ast.Inspect(f, m.inspect)
	}
	for _, line := range m.found {
		t.Error(line)
	}
}

// fsmEdges are the files of fsm whose effects cannot reach state: what they are for. All
// other files, and new ones, are part of Apply and held to be pure.
var fsmEdges = map[string]string{
	"feed.go":    "hands changes to listeners, in a goroutine of its own",
	"metrics.go": "measures",
	"wait.go":    "lets readers wait for an index",
}

func TestDeterminism_FSM(t *testing.T) {
	p := load(t, "fsm")
	m := newImpure(p.Fset, p.TypesInfo, p.Syntax)
	edges := 0
	for _, f := range p.Syntax {
		if _, edge := fsmEdges[filepath.Base(p.Fset.Position(f.Pos()).Filename)]; edge {
			edges++
			continue
		}
		ast.Inspect(f, m.inspect)
	}
	for _, line := range m.found {
		t.Error(line)
	}
	if edges != len(fsmEdges) {
		t.Errorf("%d of the %d files named as edges exist", edges, len(fsmEdges))
	}
}

func TestDeterminism_PlantedEffectsAreFound(t *testing.T) {
	for name, src := range map[string]string{
		"clock":     "import \"time\"\nfunc f() { _ = time.Now() }",
		"timer":     "import \"time\"\nfunc f() { <-time.After(1) }",
		"random":    "import \"math/rand\"\nfunc f() { _ = rand.Int() }",
		"goroutine": "func f() { go func() {}() }",
		"select":    "func f() { select {} }",
		"map order": "func f() { for k := range map[string]int{} { _ = k } }",
	} {
		if found := inspectSource(t, "package x\n"+src+"\n"); len(found) != 1 {
			t.Errorf("%s: found %v", name, found)
		}
	}
	marked := "package x\nfunc f() {\n// order-free: nothing happens\nfor range map[string]int{} {\n}\n}\n"
	if found := inspectSource(t, marked); len(found) != 0 {
		t.Errorf("a marked range was reported: %v", found)
	}
}

func inspectSource(t *testing.T, src string) []string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := conf.Check("x", fset, []*ast.File{f}, info); err != nil {
		t.Fatal(err)
	}
	m := newImpure(fset, info, []*ast.File{f})
	ast.Inspect(f, m.inspect)
	return m.found
}
