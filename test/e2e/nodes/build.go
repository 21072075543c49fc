package nodes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build makes the binary in dir and returns its path. The go command's cache makes a
// second build quick.
func Build(dir string) (string, error) {
	out := filepath.Join(dir, "rollcall")
	cmd := exec.Command("go", "build", "-o", out, "github.com/rollcall-io/rollcall/cmd/rollcall")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, text)
	}
	return out, nil
}
