// Package peerpb holds the code that protoc makes of peer.proto.
package peerpb

//go:generate sh -c "cd .. && protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc) --go_out=peerpb --go_opt=paths=source_relative --go-grpc_out=peerpb --go-grpc_opt=paths=source_relative peer.proto"
