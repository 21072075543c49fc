module github.com/rollcall-io/rollcall/test/compat

go 1.26.0

require github.com/nacos-group/nacos-sdk-go v1.1.6 // indirect
