package schema

import (
	"regexp/syntax"

	"cuelang.org/go/cue"
)

// longestOf returns how many characters a string that fulfils atoms can have at most; -1 if there is no end.
func longestOf(atoms []atom) int64 {
	longest := int64(-1)
	limit := func(n int64) {
		if n >= 0 && (longest < 0 || n < longest) {
			longest = n
		}
	}
	for _, a := range atoms {
		switch {
		case a.isLiteral():
			s, err := a.value.String()
			if err != nil {
				return 0 // no string
			}
			limit(int64(len([]rune(s))))
		case a.isDisjunction():
			n := int64(0)
			for _, arm := range a.arms {
				if l := longestOf(arm); l < 0 || n < 0 {
					n = -1
				} else {
					n = max(n, l)
				}
			}
			limit(n)
		case a.call == "MaxRunes":
			limit(*a.count())
		case a.op == cue.RegexMatchOp:
			if s, err := a.args[0].String(); err == nil {
				limit(maxRunes(s))
			}
		case a.value.IncompleteKind()&cue.StringKind == 0:
			return 0
		}
	}
	return longest
}

// maxRunes returns how many characters a string that matches pattern can have at most; -1 if there is no end, or if the
// pattern matches within longer strings.
func maxRunes(pattern string) int64 {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || !anchored(parsed) {
		return -1
	}
	n := longestMatch(parsed)
	if n > 1<<20 {
		return -1
	}
	return n
}

// anchored tells whether the pattern matches whole strings only.
func anchored(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !anchored(sub) {
				return false
			}
		}
		return true
	case syntax.OpConcat:
		return len(re.Sub) > 1 && re.Sub[0].Op == syntax.OpBeginText && re.Sub[len(re.Sub)-1].Op == syntax.OpEndText
	case syntax.OpCapture:
		return anchored(re.Sub[0])
	}
	return false
}

func longestMatch(re *syntax.Regexp) int64 {
	sum := func(count int64) int64 {
		total := int64(0)
		for _, sub := range re.Sub {
			n := longestMatch(sub)
			if n < 0 {
				return -1
			}
			total += n
		}
		return total * count
	}
	switch re.Op {
	case syntax.OpLiteral:
		return int64(len(re.Rune))
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpStar, syntax.OpPlus:
		if sum(1) == 0 {
			return 0
		}
		return -1
	case syntax.OpRepeat:
		if re.Max < 0 {
			return -1
		}
		return sum(int64(re.Max))
	case syntax.OpAlternate:
		longest := int64(0)
		for _, sub := range re.Sub {
			n := longestMatch(sub)
			if n < 0 {
				return -1
			}
			longest = max(longest, n)
		}
		return longest
	default:
		return sum(1)
	}
}
