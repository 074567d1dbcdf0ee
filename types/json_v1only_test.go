//go:build !goexperiment.jsonv2

package types_test

func codecs() []codec { return []codec{jsonV1()} }
