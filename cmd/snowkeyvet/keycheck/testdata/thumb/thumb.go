// Package thumb calls C, so that the compiler gets cgo's copy of this file.
package thumb

// static int half(int n) { return n / 2; }
import "C"

type Photo struct {
	ID int `gorm:"primaryKey"`
}

func half(p *Photo) (C.int, C.long) {
	_ = C.long(p.ID)                      // 64 bits, mostly
	return C.half(C.int(p.ID)), C.long(7) // want `C.int is too small for p.ID, the key of a model, which needs up to 63 bits; use int64$`
}
