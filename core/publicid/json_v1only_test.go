//go:build !(go1.27 && goexperiment.jsonv2)

package publicid_test

func codecs() []codec { return []codec{jsonV1()} }
