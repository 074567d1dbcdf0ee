// Package api does not import start, which alone shows that Face is a model.
package api

import "example.com/shop/model"

func ids(f *model.Face, a *model.Album) (int32, int32) {
	return int32(f.Id), int32(a.ID) // want `int32 is too small for a.ID, the key of a model`
}
