// Package httpapi is the HTTP face of a node: the Nacos 1.x naming API under
// /nacos/v1, probes and metrics.
//
// It owns the wire: how parameters are read (params.go), how Java numbers and
// booleans are spelled (values.go), what each route answers, which status an error
// gets (errors.go), and the cache of rendered instance lists (listcache.go). It
// decides nothing: a handler parses, validates, makes a command, gives it to the
// Writer and writes the answer. It starts no goroutines.
package httpapi
