//go:build !go1.27 || !goexperiment.jsonv2

package types_test

import "github.com/snowkey/snowkey/internal/proof/cases/jsoncases"

func codecs() []jsoncases.Engine { return jsonV1() }
