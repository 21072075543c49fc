package clustertest

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLeaks_DescriptorsAreToldByKind(t *testing.T) {
	before := openDescriptors()
	if before == nil {
		t.Skip("the system does not tell its descriptors")
	}
	if err := grown(before, openDescriptors()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "left"))
	if err != nil {
		t.Fatal(err)
	}
	got := grown(before, openDescriptors())
	if got == nil || !strings.Contains(got.Error(), " socket") || !strings.Contains(got.Error(), "1 left") {
		t.Errorf("error %v", got)
	}
	l.Close()
	f.Close()
	if err := grown(before, openDescriptors()); err != nil {
		t.Error(err)
	}
}
