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
	what := c.name(key.Type()) + " of " + callee(call)
	if err == nil || len(*err.Referrers()) == 0 {
		if !strings.HasSuffix(c.Fset.Position(call.Pos()).Filename, "_test.go") {
			c.report("err", c.at(call), "the "+what+" is used and its error dropped; the key is 0 if there is an error")
		}
		return
	}
	for _, r := range *err.Referrers() {
		if _, stored := r.(*ssa.Store); stored {
			return // in a variable that others may look at
		}
	}
	for _, use := range *key.Referrers() {
		if failed := failedBlock(err); failed != nil && usesKey(use, err) && afterFailure(use, failed, err) {
			c.report("err", span(position(use)), "the "+what+" is used although the error is not nil; the key is 0 then")
		} else if passesKey(use, err) && !looked(use, err) {
			c.report("err", span(position(use)), "the "+what+" is used before its error is looked at; the key is 0 if there is an error")
		}
	}
}

func callee(call *ssa.Call) string {
	if call.Call.IsInvoke() {
		return call.Call.Method.Name()
	}
	if f := call.Call.StaticCallee(); f != nil {
		return f.Name()
	}
	return "the call"
}

// position returns where an instruction is, or the value that it uses, or what it is for.
func position(instr ssa.Instruction) token.Pos {
	for range 4 {
		if instr.Pos().IsValid() {
			return instr.Pos()
		}
		value, ok := instr.(ssa.Value)
		if !ok || value.Referrers() == nil || len(*value.Referrers()) == 0 {
			break
		}
		instr = (*value.Referrers())[0]
	}
	block := instr.Block()
	for _, next := range block.Instrs[slices.Index(block.Instrs, instr):] {
		if next.Pos().IsValid() {
			return next.Pos()
		}
	}
	return block.Parent().Pos()
}

// failedBlock returns the block that runs only if err is not nil, if there is exactly one.
func failedBlock(err ssa.Value) (failed *ssa.BasicBlock) {
	for _, r := range *err.Referrers() {
		compared, ok := r.(*ssa.BinOp)
		if !ok {
			continue
		}
		for _, r := range *compared.Referrers() {
			branch, ok := r.(*ssa.If)
			if !ok {
				return nil
			}
			block := branch.Block().Succs[0]
			if compared.Op == token.EQL {
				block = branch.Block().Succs[1]
			}
			if failed != nil || len(block.Preds) != 1 {
				return nil
			}
			failed = block
		}
	}
	return failed
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

var ends = regexp.MustCompile(`^(Fatal|Exit|Panic|Fail|Skip|Abort|Must|panic|fatal|die|exit|fail)`)

// afterFailure reports whether use runs although err was not nil: in the branch for errors, or
// after a branch that neither ends nor looks at the error again.
func afterFailure(use ssa.Instruction, failed *ssa.BasicBlock, err ssa.Value) bool {
	if failed.Dominates(use.Block()) {
		return true
	}
	for _, instr := range failed.Instrs {
		if call, ok := instr.(*ssa.Call); ok && (ends.MatchString(callee(call)) || callee(call) == "the call") {
			return false
		}
	}
	if _, on := failed.Instrs[len(failed.Instrs)-1].(*ssa.Jump); !on {
		return false
	}
	origin := err.(*ssa.Extract).Block()
	seen := map[*ssa.BasicBlock]bool{origin: true} // a loop gets a new key there
	var reach func(*ssa.BasicBlock) bool
	reach = func(b *ssa.BasicBlock) bool {
		if b == use.Block() {
			return true
		}
		if seen[b] {
			return false
		}
		seen[b] = true
		return slices.ContainsFunc(b.Succs, reach)
	}
	return slices.ContainsFunc(failed.Succs, reach)
}

// passesKey reports whether an instruction hands the key to a call that does not get the error.
func passesKey(use ssa.Instruction, err ssa.Value) bool {
	switch use := use.(type) {
	case *ssa.Call:
		return !slices.Contains(use.Call.Args, err) && !ours(use)
	case *ssa.MakeInterface:
		rest := use.Block().Instrs
		for _, instr := range rest[slices.Index(rest, ssa.Instruction(use)):] {
			if slices.Contains(*err.Referrers(), instr) {
				return false
			}
			if call, ok := instr.(*ssa.Call); ok {
				return !prints.MatchString(callee(call))
			}
		}
	}
	return false
}

var prints = regexp.MustCompile(`(?i)print|format|err|log|fatal|info|warn|debug|trace`)

// ours reports whether a call is one of this library that only reads a key, such as Layout.Parts.
func ours(call *ssa.Call) bool {
	f := call.Call.StaticCallee()
	return f != nil && f.Pkg != nil && strings.HasPrefix(f.Pkg.Pkg.Path(), strings.TrimSuffix(TypesPath, "types")) &&
		f.Signature.Results().Len() == 1
}

// looked reports whether something has used err before use.
func looked(use ssa.Instruction, err ssa.Value) bool {
	block := use.Block()
	for _, r := range *err.Referrers() {
		if r.Block() == block && slices.Index(block.Instrs, r) <= slices.Index(block.Instrs, use) ||
			r.Block() != block && r.Block().Dominates(block) {
			return true
		}
	}
	return false
}
