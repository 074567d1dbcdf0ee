// Package publicid writes keys as texts that may be shown. It needs a secret, and neither a layout nor
// a generator. Anybody can read from the key of an order when it was made, and from two of them how
// much a shop sells. The public form of a key tells neither, and is refused if somebody copies it
// wrongly:
//
//	orders, err := publicid.New(publicid.Config{Prefix: "order", Keys: keys})
//	…
//	orders.Encode(order.ID)        // order_o0EFNu4exJSs3Decs6IpXMo
//	id, err := orders.Decode(text) // ErrInvalid: answer 404
//
// A field of type [ID] in a response or a request does this by itself, with the Codec of its type.
//
// # What it hides, and what it is not
//
// Without the secret key of the Codec, a text tells neither the time of its row nor the worker, nor
// how many rows there are, nor the texts of the rows before and after it. Without the key no text
// can be made that decodes. It does tell the prefix, six bits that name the secret, and whether two
// texts are of one row, because an ID has one text for each secret. Compare IDs rather than texts,
// which change with the secret.
//
// It is not a permission, because a text that was shown stays valid, and stays in logs, bookmarks and
// Referer headers. Check whose row it is. It authenticates nothing besides the ID. It is never a
// column, because it is random to an index, and would have to be rewritten when the secret changes.
//
// # Why a changed text is refused
//
// A text is the prefix, an underscore, a digit that names the secret, and 22 digits that are one
// block of AES as a number in base 62, most significant digit first:
//
//	block  = AES(secret, ID | tag)                                    ID: 8 bytes, big-endian
//	tag    = first 8 bytes of SHA-256("snowkey publicid prefix " | prefix)
//	name   = first 8 bytes of HMAC-SHA-256(secret, "snowkey publicid key name"), big-endian, modulo 62
//	digits = 0-9A-Za-z, as in types.Base62
//
// Numbers from 2^128 on are refused, so that a block has one spelling.
//
// To anybody without the secret, AES is a random permutation of all blocks, in both directions. It
// needs no mode, nonce or padding here, because one block is the whole message: whichever character
// of it changes, it becomes another block, which decrypts to one that is as good as random. Half of
// that has to be the tag, and the sign of the ID has to be 0. A changed text, or one of another
// secret, therefore passes with a probability below 2^-64. A text of another prefix never passes,
// unless 64 bits of two SHA-256 are equal. There is no shorter form, because it could only save on
// the tag.
//
// The parsers of package types refuse a public form because of its underscore, and Decode refuses
// what they read. Among themselves they do not always: 11 digits are a key in decimal and another one
// in base 62. Let a parameter have one form, instead of trying several.
//
// # Secrets
//
// Take 16 or 32 bytes from crypto/rand, or from openssl rand -hex 32 and decode them. Use different
// ones for tests and for production, and use them for nothing else. Keep them where the program's
// passwords are, away from the database, the same ones for all processes. If they are lost, the texts
// are too, but no row is.
//
// To change the secret, add the new one at the end in every process, since each has to read what any
// other writes, and then move it to the front. Remove the old one when its texts may stop working. If
// it became known, that is at once: whoever has it reads the keys, and writes texts of any.
//
// This package is stable.
package publicid
