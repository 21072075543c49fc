package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func secret(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"secret"}, args...), &out, &errs)
	return code, out.String() + errs.String()
}

func TestSecret_PrintsANewOneEachTime(t *testing.T) {
	_, first := secret(t)
	code, second := secret(t)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(second))
	if code != 0 || err != nil || len(raw) != secretBytes || first == second {
		t.Fatalf("exit %d, %q after %q, %v", code, second, first, err)
	}
}

func TestSecret_FileIsMadeOnceForItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if code, says := secret(t, "--file", path); code != 0 || !strings.HasPrefix(says, "made ") {
		t.Fatalf("exit %d: %s", code, says)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if code, says := secret(t, "--file", path); code != 0 || !strings.Contains(says, "already") {
		t.Fatalf("second time exit %d: %s", code, says)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Fatalf("changed from %q to %q, %v", before, after, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
}

func TestSecret_TwoAtOnceAgree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	var wg sync.WaitGroup
	made := make([]bool, 8)
	for i := range made {
		wg.Go(func() {
			var err error
			if made[i], err = writeSecret(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	winners := 0
	for _, m := range made {
		if m {
			winners++
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if winners != 1 || err != nil || len(left) != 1 {
		t.Fatalf("%d made it, %d files left, %v", winners, len(left), err)
	}
}

func TestSecret_DirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	if code, says := secret(t, "--file", dir); code != 1 || !strings.Contains(says, dir) {
		t.Fatalf("exit %d: %s", code, says)
	}
	if code, says := secret(t, "--file", filepath.Join(dir, "no", "where")); code != 1 || !strings.Contains(says, "--file") {
		t.Fatalf("exit %d: %s", code, says)
	}
}

// A secret that no node takes is not called there.
func TestSecret_ShortFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, says := secret(t, "--file", path); code != 1 || !strings.Contains(says, "holds 3 bytes") {
		t.Fatalf("exit %d: %s", code, says)
	}
}
