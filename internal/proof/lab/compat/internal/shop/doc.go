// Package shop is what protoc generates of shop.proto and gateway.yaml, for the tests of packages
// protobuf and gateway. Version 3.21.12 of protoc, which is Debian 12's, wrote it, with the
// plugins below.
package shop

//go:generate go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
//go:generate go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
//go:generate go install github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway@v2.29.0
//go:generate protoc --go_out=paths=source_relative:. --go-grpc_out=paths=source_relative:. --grpc-gateway_out=paths=source_relative,grpc_api_configuration=gateway.yaml:. shop.proto
