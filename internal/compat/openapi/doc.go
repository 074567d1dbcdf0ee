// Package openapi tests clients and a server that are generated from an OpenAPI document in which
// keys are strings: in Go by oapi-codegen, in TypeScript by openapi-typescript.
package openapi

//go:generate go tool oapi-codegen -config oapi-codegen.yaml -o generated/generated.go openapi.yaml
