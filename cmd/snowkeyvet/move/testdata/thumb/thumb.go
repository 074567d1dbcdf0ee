// Package thumb calls C, so that the compiler gets cgo's copy of this file.
package thumb

// static int half(int n) { return n / 2; }
import "C"

type Photo struct {
	ID   uint `gorm:"primaryKey"`
	Size C.int
}

func half(p *Photo) (C.int, uint) { return C.half(p.Size), p.ID }

func name(p *Photo) C.int {
	id := C.int(p.ID)
	return C.half(id)
}
