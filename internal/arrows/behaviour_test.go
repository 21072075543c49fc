package arrows

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest is a test as documents name it: package, point, name, and after a slash the
// script that is one case of it.
var namedTest = regexp.MustCompile("`([a-z][a-z0-9/]*)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/([a-z0-9-]+))?`")

// missingTests are the tests that a text names and the tree at root does not have.
func missingTests(root, text string) (missing []string, named int) {
	for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
		named++
		if why := lookFor(root, m[1], m[2], m[3]); why != "" {
			missing = append(missing, m[0]+": "+why)
		}
	}
	return missing, named
}

func lookFor(root, dir, name, script string) string {
	files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go")) // the pattern is good
	found := false
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		found = found || strings.Contains(string(code), "\nfunc "+name+"(")
	}
	if !found {
		return "no such test"
	}
	if script == "" {
		return ""
	}
	scripts, _ := filepath.Glob(filepath.Join(root, dir, "testdata", "*", script+".txt"))
	more, _ := filepath.Glob(filepath.Join(root, dir, "testdata", script+".txt"))
	if len(scripts)+len(more) == 0 {
		return fmt.Sprintf("no script %s.txt", script)
	}
	return ""
}

func TestBehaviour_EveryTestNamedExists(t *testing.T) {
	text, err := os.ReadFile("../../docs/behaviour.md")
	if err != nil {
		t.Fatal(err)
	}
	missing, named := missingTests("../..", string(text))
	for _, m := range missing {
		t.Error(m)
	}
	for row := range strings.Lines(string(text)) {
		if cells := strings.Split(row, "|"); len(cells) > 4 && !strings.Contains(row, "---") &&
			!strings.Contains(row, "shown by") && !namedTest.MatchString(cells[len(cells)-2]) {
			t.Errorf("a step without a test: %s", row)
		}
	}
	if named < 50 {
		t.Errorf("only %d tests named", named)
	}
}

// The table at the end of client.md names tests in its second column.
func TestClient_EveryTestNamedExists(t *testing.T) {
	text, err := os.ReadFile("../../docs/client.md")
	if err != nil {
		t.Fatal(err)
	}
	missing, named := missingTests("../..", string(text))
	for _, m := range missing {
		t.Error(m)
	}
	for row := range strings.Lines(string(text)) {
		if cells := strings.Split(row, "|"); len(cells) == 5 && strings.Contains(cells[2], ".Test") && !namedTest.MatchString(cells[2]) {
			t.Errorf("a row without a test: %s", row)
		}
	}
	if named < 60 {
		t.Errorf("only %d tests named", named)
	}
}

func TestBehaviour_PlantedNamesAreFound(t *testing.T) {
	missing, _ := missingTests("../..", "`internal/arrows.TestNothing`, `nowhere.TestX`, `httpapi.TestContract/nothing`, `internal/arrows.TestImports_FollowTheTable`")
	if len(missing) != 3 {
		t.Errorf("%d of 3 names that stand for nothing were found: %v", len(missing), missing)
	}
}
