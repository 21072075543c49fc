//go:build !(linux || darwin || freebsd)

package raftnode

import "errors"

func freeSpace(string) (uint64, error) { return 0, errors.New("not known on this system") }
