package httpapi

import (
	"math"
	"testing"
)

func TestIsTrue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"true": true, "True": true, "TRUE": true, "on": true, "yes": true, "Y": true, "t": true,
		"1": false, "0": false, "false": false, "abc": false, "off": false, "": false, "maybe": false} {
		if got := isTrue(text); got != want {
			t.Errorf("isTrue(%q) = %v", text, got)
		}
	}
}

func TestInteger_AsJava(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 0, "+80": 80, "-1": -1, "08080": 8080, "2147483647": math.MaxInt32} {
		if got, err := integer(text); err != nil || got != want {
			t.Errorf("integer(%q) = %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "abc", "80.5", "1e4", "2147483648", "99999999999", "8080abc", "1_000", "0x10", " 1"} {
		if got, err := integer(text); err == nil {
			t.Errorf("integer(%q) = %d, want an error", text, got)
		}
	}
}

func TestDouble_AsJava(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"1": 1, "1e2": 100, " 1 ": 1, ".5": .5, "5.": 5, "+1": 1, "1f": 1, "2.5D": 2.5,
		"0x1p-2": .25, "1e309": math.Inf(1), "-1e309": math.Inf(-1), "Infinity": math.Inf(1), "1e-320": 1e-320} {
		if got, err := double(text); err != nil || got != want {
			t.Errorf("double(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	if got, err := double("NaN"); err != nil || !math.IsNaN(got) {
		t.Errorf("double(NaN) = %v, %v", got, err)
	}
	for _, text := range []string{"", "x", "1,5", "1_000", "0x_1p-2", "inf", "nan", "infinity", "f", "--1", "1 2", "0x10", "e5"} {
		if got, err := double(text); err == nil {
			t.Errorf("double(%q) = %v, want an error", text, got)
		}
	}
}

func TestAppendDouble_AsJava(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{1: "1.0", 0: "0.0", 10000: "10000.0", 2.5: "2.5", 0.01: "0.01"} {
		if got := string(appendDouble(nil, f)); got != want {
			t.Errorf("appendDouble(%v) = %s, want %s", f, got, want)
		}
	}
	if got := string(appendFloat(nil, float64(float32(0.7)))); got != "0.7" {
		t.Errorf("appendFloat = %s, want 0.7", got)
	}
}

func TestParseAgent(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]agent{
		"Nacos-Java-Client:v1.4.7":         {agentJava, [3]int{1, 4, 7}},
		"Nacos-Java-Client:v2.0.0-RC.1":    {agentJava, [3]int{2, 0, 0}},
		"Nacos-Java-Client":                {agentJava, [3]int{}},
		"Nacos-Java-Client:vx":             {},
		"Nacos-Java-Client:v9999999999":    {},
		"Nacos-Go-Client:v1.0":             {agentGo, [3]int{1, 0, 0}},
		"Nacos-go-Client:v1.0.0":           {agentGo, [3]int{1, 0, 0}},
		"Nacos-Python-Client:v0.1.16":      {agentPython, [3]int{0, 1, 16}},
		"vip-client4cpp:v1.0.12":           {agentC, [3]int{1, 0, 12}},
		"curl/8.0":                         {},
		"":                                 {},
		"Nacos-Server:v1.4.7":              {},
		"Nacos-CSharp-Client:v0.9.0.extra": {agentCSharp, [3]int{0, 9, 0}},
	} {
		if got := parseAgent(header); got != want {
			t.Errorf("parseAgent(%q) = %v, want %v", header, got, want)
		}
	}
}
