//go:build go1.27 && goexperiment.jsonv2

package publicid_test

import jsonv2 "encoding/json/v2"

func codecs() []codec {
	return []codec{
		jsonV1(),
		{
			"encoding/json/v2",
			func(v any) ([]byte, error) { return jsonv2.Marshal(v) },
			func(data []byte, v any) error { return jsonv2.Unmarshal(data, v) },
		},
	}
}
