package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
)

const envPrefix = "ROLLCALL_"

// envName is the environment variable of a flag: --data-dir is ROLLCALL_DATA_DIR.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func envOr(name, otherwise string) string {
	if v, found := os.LookupEnv(name); found {
		return v
	}
	return otherwise
}

// fillIn gives every flag that the command line left alone the value of its environment
// variable or else of its key in the settings file. It reports all bad values joined.
func fillIn(flags *pflag.FlagSet, configFile string) error {
	if !flags.Changed("config") {
		configFile = envOr(envName("config"), configFile)
	}
	file, err := readSettings(configFile)
	if err != nil {
		return err
	}
	var bad []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "config" || f.Name == "help" {
			return // in the file they would do nothing, so they are unknown there
		}
		fromFile, inFile := file[f.Name]
		delete(file, f.Name)
		if f.Changed {
			return
		}
		if v, found := os.LookupEnv(envName(f.Name)); found {
			if err := flags.Set(f.Name, v); err != nil {
				bad = append(bad, fmt.Errorf("environment %s=%q: %w", envName(f.Name), v, err))
			}
		} else if inFile {
			if err := flags.Set(f.Name, fromFile); err != nil {
				bad = append(bad, fmt.Errorf("%s: %s: %w", configFile, f.Name, err))
			}
		}
	})
	for _, key := range slices.Sorted(maps.Keys(file)) {
		bad = append(bad, fmt.Errorf("%s: unknown key %q: keys are named like the flags of rollcall serve", configFile, key))
	}
	return errors.Join(bad...)
}

// foreignEnv are variables with the prefix that something else than serve reads.
var foreignEnv = []string{"ROLLCALL_ADDR", "ROLLCALL_USER", "ROLLCALL_PASSWORD", "ROLLCALL_CLUSTER_DIR"}

// linkedEnv are the names that Kubernetes and old Docker links give every container when
// a service is called rollcall.
var linkedEnv = regexp.MustCompile(`_PORT(_\d.*)?$|_SERVICE_(HOST|PORT)`)

// strayEnv returns the variables of environ with rollcall's prefix that are settings of
// nothing, such as misspelt ones, sorted.
func strayEnv(flags *pflag.FlagSet, environ []string) []string {
	var stray []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(foreignEnv, name) || linkedEnv.MatchString(name) {
			continue
		}
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-"))
		if flags.Lookup(flag) == nil || envName(flag) != name {
			stray = append(stray, name)
		}
	}
	slices.Sort(stray)
	return stray
}

// readSettings reads a YAML mapping of flag names to scalars or lists of scalars.
func readSettings(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var raw map[string]any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("--config %s: %w", path, err)
	}
	settings := make(map[string]string, len(raw))
	for key, value := range raw {
		if settings[key], err = scalar(value); err != nil {
			return nil, fmt.Errorf("--config %s: %s: %w", path, key, err)
		}
	}
	return settings, nil
}

func scalar(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case map[string]any:
		return "", errors.New("must be a single value or a list, not a mapping")
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			part, err := scalar(item)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return strings.Join(parts, ","), nil
	default:
		return fmt.Sprint(v), nil
	}
}
