//go:build linux || darwin || freebsd

package raftnode

import "syscall"

// freeSpace is the number of bytes that this process may still write below dir.
func freeSpace(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
