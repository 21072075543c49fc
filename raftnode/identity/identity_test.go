package identity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIdentity_IsKept(t *testing.T) {
	dir := t.TempDir()
	if _, found, err := Load(dir); found || err != nil {
		t.Fatalf("empty directory: %v, %v", found, err)
	}
	want := Identity{Format: Format, Node: "n1", Incarnation: NewIncarnation(), Cluster: NewCluster(), Started: true}
	if err := Save(dir, want); err != nil {
		t.Fatal(err)
	}
	got, found, err := Load(dir)
	if err != nil || !found || got != want {
		t.Fatalf("got %+v, %v, %v", got, found, err)
	}
	if a, b := NewNode(), NewNode(); a == b {
		t.Error("two nodes get one id")
	}
}

func TestLoad_RefusesWhatItCannotUnderstand(t *testing.T) {
	for name, row := range map[string]struct{ content, want string }{
		"newer":    {`{"format":2,"node":"n1","incarnation":"a","more":1}`, "has format 2"},
		"unknown":  {`{"format":1,"node":"n1","incarnation":"a","more":1}`, "more"},
		"empty":    {`{"format":1}`, "lacks"},
		"cut off":  {`{"format":1,"no`, "read identity"},
		"not JSON": {"x", "read identity"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, fileName), []byte(row.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Load(dir); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("error %v, want %q", err, row.want)
			}
		})
	}
}
