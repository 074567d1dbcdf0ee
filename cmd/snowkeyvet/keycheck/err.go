package keycheck

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// checkError reports the uses of a key although the error beside it may be one.
func (c *checker) checkError(call *ssa.Call) {
	results, ok := call.Type().(*types.Tuple)
	if !ok || results.Len() != 2 || !keyType(results.At(0).Type()) ||
		!types.Identical(results.At(1).Type(), types.Universe.Lookup("error").Type()) {
		return
	}
	var key, err *ssa.Extract
	for _, r := range *call.Referrers() {
		if extract, ok := r.(*ssa.Extract); ok && extract.Index == 0 {
			key = extract
		} else if ok {
			err = extract
		}
	}
	if key == nil || len(*key.Referrers()) == 0 {
		return
	}
	what := "the " + c.name(key.Type()) + " of " + callee(call) + " is used "
	if err == nil || len(*err.Referrers()) == 0 {
		if !strings.HasSuffix(c.Fset.Position(call.Pos()).Filename, "_test.go") {
			c.report("err", span(call.Pos()), what+"and its error dropped; the key is 0 if there is an error")
		}
		return
	}
	if slices.ContainsFunc(*err.Referrers(), func(r ssa.Instruction) bool { _, stored := r.(*ssa.Store); return stored }) {
		return // in a variable that others may look at
	}
	c.walk(err.Block(), slices.Index(err.Block().Instrs, ssa.Instruction(err)), uses{key: key, err: err, what: what, seen: map[*ssa.BasicBlock]bool{err.Block(): true}})
}

// uses are the uses of a key beside an error.
type uses struct {
	key, err ssa.Value
	what     string
	failed   *ssa.BasicBlock // runs only if the error is not nil; nil until the error is looked at
	seen     map[*ssa.BasicBlock]bool
}

// walk reports the uses of a key from an instruction on, where nothing says that the error is nil.
func (c *checker) walk(block *ssa.BasicBlock, from int, u uses) {
	for _, instr := range block.Instrs[from:] {
		call, isCall := instr.(*ssa.Call)
		switch used := slices.Contains(*u.key.Referrers(), instr) && usesKey(instr, u.err); {
		case used && u.failed != nil:
			c.report("err", span(position(instr)), u.what+"although the error is not nil; the key is 0 then")
		case used && isCall:
			c.report("err", span(position(instr)), u.what+"before its error is looked at; the key is 0 if there is an error")
		case u.failed != nil && isCall && ends.MatchString(callee(call)):
			return
		case u.failed == nil && slices.Contains(*u.err.Referrers(), instr):
			compared, ok := instr.(*ssa.BinOp)
			branch, last := block.Instrs[len(block.Instrs)-1].(*ssa.If)
			if !ok || !last || branch.Cond != compared {
				return // something else looks at the error
			}
			if u.failed = block.Succs[0]; compared.Op == token.EQL {
				u.failed = block.Succs[1]
			}
			if len(u.failed.Preds) == 1 {
				c.walk(u.failed, 0, u)
			}
			return
		}
	}
	for _, next := range block.Succs {
		inside := u.failed == nil || u.failed.Dominates(next)
		// After a branch for errors that does not end, everything runs in spite of the error.
		after := u.failed != nil && (block == u.failed && len(block.Succs) == 1 || !u.failed.Dominates(block))
		if (inside || after) && !u.seen[next] {
			u.seen[next] = true
			c.walk(next, 0, u)
		}
	}
}

// A span is a position alone.
type span token.Pos

func (s span) Pos() token.Pos { return token.Pos(s) }
func (s span) End() token.Pos { return token.Pos(s) }

func callee(call *ssa.Call) string {
	if call.Call.IsInvoke() {
		return call.Call.Method.Name()
	}
	if f := call.Call.StaticCallee(); f != nil {
		return f.Name()
	}
	return "the call"
}

// position returns where an instruction is, or the next one that the source has.
func position(instr ssa.Instruction) token.Pos {
	block := instr.Block()
	for _, next := range block.Instrs[slices.Index(block.Instrs, instr):] {
		if next.Pos().IsValid() {
			return next.Pos()
		}
	}
	return block.Parent().Pos()
}

// usesKey reports whether an instruction relies on the key: it stores it, passes it to a call as
// a key, or returns it without the error. Comparing and printing it is nothing wrong.
func usesKey(use ssa.Instruction, err ssa.Value) bool {
	switch use := use.(type) {
	case *ssa.Store, *ssa.MapUpdate, *ssa.Send:
		return true
	case *ssa.Call:
		name := callee(use)
		return !slices.Contains(use.Call.Args, err) && name != "String" && name != "IsZero"
	case *ssa.Return:
		return !slices.ContainsFunc(use.Results, func(v ssa.Value) bool {
			_, constant := v.(*ssa.Const)
			return types.IsInterface(v.Type()) && !constant
		})
	}
	return false
}

var ends = regexp.MustCompile(`^(Fatal|Exit|Panic|Fail|Skip|Abort|Must|panic|fatal|die|exit|fail|the call)`)
