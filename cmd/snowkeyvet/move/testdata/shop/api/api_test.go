package api

import "testing"

func TestReply(t *testing.T) {
	const want = `{"id":1,"count":2}`
	if r := (reply{ID: uint(1)}); r.ID != 1 {
		t.Error(want)
	}
}
