package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A planted fault is a unified diff with a head of lines
//
//	what: what the fault does
//	catch: package.TestName that must fail with it
//
// It is applied to copies of the files, which the compiler is shown in place of them: the
// tree itself is never changed.

// plant is one planted fault.
type plant struct {
	name    string
	what    string
	catches []string
	patch   string
}

func load(dir string) ([]plant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("no planted faults in %s", dir), err)
	}
	slices.Sort(files)
	var all []plant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		p := plant{name: strings.TrimSuffix(filepath.Base(file), ".patch"), patch: path}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if what, found := strings.CutPrefix(line, "what: "); found {
				p.what = what
			}
			if test, found := strings.CutPrefix(line, "catch: "); found {
				p.catches = append(p.catches, test)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// catch runs the tests with each fault planted. A test that passes has not caught it; one
// that does not compile proves nothing.
func catch(dir, only string, first bool) (code int) {
	all, err := load(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return 2
	}
	for _, p := range all {
		if only != "" && !strings.Contains(p.name, only) {
			continue
		}
		if first {
			p.catches = p.catches[:min(1, len(p.catches))]
		}
		for _, test := range p.catches {
			verdict, err := p.try(test)
			if err != nil {
				verdict, code = "BROKEN: "+err.Error(), 1
			} else if verdict != "caught" {
				code = 1
			}
			fmt.Printf("%-28s %-8s %s\n", p.name, verdict, test)
		}
	}
	return code
}

// try plants the fault and runs one test.
func (p plant) try(test string) (string, error) {
	dir, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := p.overlay(dir)
	if err != nil {
		return "", err
	}
	at := strings.LastIndex(test, ".")
	pkg, name := test[:at], test[at+1:]
	cmd := exec.Command("go", "test", "-count=1", "-v", "-timeout", "5m", "-run", "^"+name+"$", "./"+pkg)
	// By the environment, so that tests which build the binary plant the fault in it too.
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return "MISSED", nil
	case bytes.Contains(out, []byte("--- FAIL: "+name)), bytes.Contains(out, []byte("panic: ")):
		return "caught", nil
	}
	return "", fmt.Errorf("%s did not run: %w\n%s", test, err, out)
}

// overlay writes the patched copies and the file that names them.
func (p plant) overlay(dir string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	list, err := exec.Command("git", "apply", "--numstat", p.patch).Output()
	if err != nil {
		return "", fmt.Errorf("read %s: %w", p.patch, err)
	}
	replace := map[string]string{}
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			return "", fmt.Errorf("odd line %q", line)
		}
		file := words[2]
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644)); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = to
	}
	cmd := exec.Command("git", "apply", "-C1", p.patch)
	cmd.Dir = dir // outside of any repository git applies to the files as they are
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the code has changed, bring %s up to date: %w: %s", filepath.Base(p.patch), err, out)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}
