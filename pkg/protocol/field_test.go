package protocol

import (
	"strings"
	"testing"
)

// fieldRow changes fields of a sample; want is the sentinel, nil for a row that
// must still read.
type fieldRow struct {
	name    string
	want    error
	changes []string
}

func no(want error, name string, changes ...string) fieldRow {
	return fieldRow{name, want, changes}
}

func yes(name string, changes ...string) fieldRow { return fieldRow{name, nil, changes} }

// text is n bytes of JSON text.
func text(n int) string { return `"` + strings.Repeat("x", n) + `"` }

// askIDRows are the temptations of every field that holds an ask id.
func askIDRows(field string) []fieldRow {
	return []fieldRow{
		no(ErrAskID, "ask id missing", field+"="),
		no(ErrAskID, "ask id null", field+"=null"),
		no(ErrAskID, "ask id empty", field+`=""`),
		no(ErrAskID, "ask id in lower case", field+`="`+strings.ToLower(askID)+`"`),
		no(ErrAskID, "ask id one too long", field+`="`+askID+`0"`),
		no(ErrAskID, "ask id one too short", field+`="`+askID[:25]+`"`),
		no(ErrAskID, "ask id with a letter that ULIDs leave out", field+`="01KB9XYZ8P3N5Q7R9S1T3V5W7U"`),
		no(ErrAskID, "ask id beyond 128 bits", field+`="81KB9XYZ8P3N5Q7R9S1T3V5W7X"`),
		no(ErrAskID, "ask id with a wildcard", field+`="`+askID[:25]+`*"`),
		no(ErrAskID, "ask id with a blank after it", field+`="`+askID+` "`),
		no(ErrAskID, "ask id in another case of its name", field+"=", strings.ToUpper(field)+`="`+askID+`"`),
		no(ErrMalformed, "ask id a number", field+"=1"),
		no(ErrMalformed, "ask id a list", field+`=["`+askID+`"]`),
		yes("ask id of the first moment", field+`="00000000000000000000000000"`),
		yes("ask id of the last moment", field+`="7ZZZZZZZZZZZZZZZZZZZZZZZZZ"`),
		yes("ask id of another moment", field+`="`+otherID+`"`),
		yes("ask id of digits alone", field+`="01234567890123456789012345"`),
		yes("ask id of letters alone but for the first", field+`="0ABCDEFGHJKMNPQRSTVWXYZABC"`),
		yes("ask id of the letters beside those left out", field+`="01HJKMNPTVHJKMNPTVHJKMNPTV"`),
		yes("ask id of this moment", field+`="`+NewAskID()+`"`),
		yes("ask id before this century", field+`="00CHJK0000000000000000000A"`),
		yes("ask id far ahead", field+`="7000000000000000000000000A"`),
		yes("ask id without randomness", field+`="01KB9XYZ8P0000000000000000"`),
		yes("ask id beside a number in another case of its name", strings.ToUpper(field)+"=1"),
		yes("ask id spelled with escapes", field+`="\u0030`+askID[1:]+`"`),
		yes("ask id beside one in another case of its name", strings.ToUpper(field)+`="x"`),
	}
}

// fieldRows are the tables by message; each has as many grants as refusals.
func fieldRows() map[string][]fieldRow {
	return map[string][]fieldRow{
		"ask": askRows(), "cancel": cancelRows(), "progress": progressRows(),
		"verdict": verdictRows(), "link_request": linkRequestRows(), "query": queryRows(), "check": checkRows(), "log_record": logRecordRows(),
		"terminal_request": terminalRequestRows(), "terminal_verdict": terminalVerdictRows(), "answer": answerRows(),
		"answer_receipt": answerReceiptRows(), "decision": decisionRows(), "review_record": reviewRows(), "notice": noticeRows(),
		"error_reply": errorReplyRows(), "pending": pendingRows(), "stored_grant": storedGrantRows(),
		"project_upload": projectUploadRows(), "project_upload_modules": projectModulesRows(), "project_receipt": projectReceiptRows(), "parent_sign": parentSignRows(),
		"freeze": freezeRows(), "confirm": confirmRows(), "confirmed": confirmedRows(),
		"cancel_receipt": {
			no(ErrMalformed, "cancelled as text", `cancelled="true"`), no(ErrMalformed, "cancelled as a number", "cancelled=1"),
			yes("cancelled", "cancelled=true"), yes("not cancelled", "cancelled=false"),
		},
		"log_receipt": {
			no(ErrMalformed, "kept as text", `kept="true"`), no(ErrMalformed, "kept as a number", "kept=1"),
			yes("kept", "kept=true"), yes("not kept", "kept=false"),
		},
	}
}

func TestFieldTablesAreBalanced(t *testing.T) {
	tables := fieldRows()
	tables["ask ids"] = askIDRows("ask")
	for _, s := range samples() {
		if len(tables[s.name]) == 0 {
			t.Errorf("%s: no table", s.name)
		}
	}
	for name, rows := range tables {
		grants, refusals := 0, 0
		for _, r := range rows {
			if r.want == nil {
				grants++
			} else {
				refusals++
			}
		}
		if grants != refusals {
			t.Errorf("%s: %d rows that read, %d that do not", name, grants, refusals)
		}
	}
}

func TestReadFields(t *testing.T) {
	for name, rows := range fieldRows() {
		s := sampleNamed(t, name)
		for _, row := range append(rows, idRowsOf(name)...) {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				b, err := s.write()
				if err != nil {
					t.Fatal(err)
				}
				v, again, err := s.read(edit(t, b, row.changes...))
				if row.want != nil {
					refused(t, v, err, row.want)
					return
				}
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if _, _, err := s.read(again); err != nil {
					t.Errorf("what was read and written again does not read: %v", err)
				}
			})
		}
	}
}

// idRowsOf are the rows on the ask id of a message that has one and needs it.
func idRowsOf(name string) []fieldRow {
	switch name {
	case "ask":
		return askIDRows("id")
	case "cancel", "cancel_receipt", "progress", "verdict", "log_receipt", "terminal_verdict", "answer", "answer_receipt", "decision", "review_record", "stored_grant":
		return askIDRows("ask")
	default:
		return nil
	}
}
