package wire

// The generated code of log entries and snapshots is test code: it is the oracle that
// this package's own functions are compared with.
//
//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative --go_opt=Mlog.proto=github.com/rollcall-io/rollcall/internal/wire\\;wire_test --go_opt=Msnapshot.proto=github.com/rollcall-io/rollcall/internal/wire\\;wire_test log.proto snapshot.proto && mv log.pb.go log_pb_test.go && mv snapshot.pb.go snapshot_pb_test.go"
