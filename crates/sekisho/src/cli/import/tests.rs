use super::*;

fn problems(register: Register, text: &str) -> Vec<(usize, String, String)> {
    let mut sheet = sheet::read(register, text.as_bytes()).unwrap();
    check(register, &mut sheet);
    sheet.problems.sort_by_key(|problem| problem.line);
    let told = sheet.problems.into_iter().map(|one| (one.line, one.column, one.detail));
    told.collect()
}

#[test]
fn h2_what_is_wrong_with_a_row_is_said_with_its_line_and_column() {
    let staff = "id,tenant,email,language,notifications,threshold_days\n";
    let subjects = "id,tenant,name,renewal_due_on\n";
    let cases = [
        (Register::Staff, staff, "s1,a,nobody,,,", "email", "expected one such as"),
        (Register::Staff, staff, "s1,a,,,,", "email", "is needed"),
        (Register::Staff, staff, ",a,t@example.jp,,,", "id", "is needed"),
        (Register::Staff, staff, "s/1,a,t@example.jp,,,", "id", "expected an id without /"),
        (Register::Staff, staff, "s1,a,t@example.jp,fr,,", "language", "\"fr\" is no language"),
        (Register::Staff, staff, "s1,a,t@example.jp,,maybe,", "notifications", "はい or いいえ"),
        (Register::Staff, staff, "s1,a,t@example.jp,,,366", "threshold_days", "from 0 to 365"),
        (Register::Staff, staff, "s1,a,t@example.jp,,,soon", "threshold_days", "from 0 to 365"),
        (Register::Staff, staff, "s1,a,t@example.jp", "row", "has 3 cells; expected 6"),
        (Register::Staff, staff, "s1,a,t@example.jp,,,,,", "row", "has 8 cells; expected 6"),
        (Register::Staff, staff, "s0,a,u@example.jp,,,", "id", "s0 stands in line 2, too"),
        (Register::Staff, staff, "s1,a,\"t@example.jp,,,\nand no end", "row", "has 3 cells"),
        (Register::Subjects, subjects, "x1,a,X,2026-02-30", "renewal_due_on", "expected YYYY-MM-DD"),
        (Register::Subjects, subjects, "x1,a,X,2026/2/30", "renewal_due_on", "\"2026-02-30\" is no day"),
        (Register::Subjects, subjects, "x1,a,,", "name", "is needed"),
        (Register::Tenants, "id,time_zone\n", "t1,Asia/Edo", "time_zone", "such as Asia/Tokyo"),
    ];
    for (register, header, row, column, words) in cases {
        let good = match register {
            Register::Tenants => "s0,",
            Register::Customers => "s0,,,,",
            Register::Staff => "s0,a,t@example.jp,ja,ON,0",
            Register::Subjects => "s0,a,S,2026/4/1",
        };
        let found = problems(register, &format!("{header}{good}\n\n{row}\n"));
        let [(4, named, said)] = &found[..] else { panic!("{row}: {found:?}") };
        assert_eq!(named, column, "{row}");
        assert!(said.contains(words), "{row}: {said}");
    }
}

#[test]
fn h2_a_header_names_the_columns_and_nothing_else() {
    let cases = [
        ("id,tenant,emial\ns1,a,t@example.jp\n", "emial", "did you mean email? expected only id, tenant,"),
        ("id,tenant,email,colour\n", "colour", "there is no such column; expected only id, tenant,"),
        ("id,tenant,email,id\n", "id", "is given twice"),
        ("id,email\ns1,t@example.jp\n", "tenant", "the column is missing"),
        ("id;tenant;email\ns1;a;t@example.jp\n", "header", "expected comma-separated"),
    ];
    for (text, column, words) in cases {
        let found = problems(Register::Staff, text);
        let (line, named, said) = &found[0];
        assert_eq!((*line, &**named), (1, column), "{text}");
        assert!(said.contains(words), "{text}: {said}");
    }
}

#[test]
fn h2_a_table_is_read_as_excel_and_people_write_it() {
    let text = "\u{feff} ID ,Tenant,email,notifications,threshold_days,family_name\r\n\
                s1,a, t@example.jp ,TRUE,7,\"山田, Jr\"\r\n\
                \r\n\
                s2,a,u@example.jp,いいえ,,\u{3000}\r\n\
                ,,,,,\r\n\
                s3,a,v@example.jp,off,0,\"two\"\"quotes\"";
    let sheet = sheet::read(Register::Staff, text.as_bytes()).unwrap();
    assert_eq!(sheet.problems, []);
    let rows: Vec<_> = sheet.rows.iter().map(|row| (row.line, json!(row.order))).collect();
    let expected = [
        (
            2,
            json!({
                "id": "s1", "tenant": "a", "email": "t@example.jp", "notifications": true, "threshold_days": 7,
                "family_name": "山田, Jr",
            }),
        ),
        (4, json!({ "id": "s2", "tenant": "a", "email": "u@example.jp", "notifications": false })),
        (
            6,
            json!({
                "id": "s3", "tenant": "a", "email": "v@example.jp", "notifications": false,
                "threshold_days": 0, "family_name": "two\"quotes",
            }),
        ),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn h2_a_file_in_another_encoding_is_refused_with_the_way_to_save_it() {
    // 山田 and ﾔﾏﾀﾞ in Shift_JIS, UTF-16, half of a letter alone, and 山 before half of a letter.
    let cases: [(&[u8], &[&str]); 6] = [
        (b"id,name\nt1,\x8e\x52\x93\x63\n", &["Shift_JIS", "CSV UTF-8", "名前を付けて保存"]),
        (b"id,name\nt1,\xd4\xcf\xc0\xde\n", &["Shift_JIS"]),
        (b"\xff\xfei\0d\0", &["UTF-16", "CSV UTF-8"]),
        (b"id,name\nt1,x\n\nt2,\xe5", &["not written in UTF-8 (line 4)", "CSV UTF-8"]),
        (b"id,name\nt1,\xe5\xb1\xb1\nt2,\xe5\xb1", &["not written in UTF-8 (line 3)"]),
        (b"", &["is empty", "id,name,language,time_zone"]),
    ];
    for (bytes, words) in cases {
        let Err(said) = sheet::read(Register::Tenants, bytes) else { panic!("{bytes:?}") };
        assert!(words.iter().all(|word| said.contains(word)), "{bytes:?}: {said}");
    }
}

#[test]
fn h2_a_long_table_goes_in_parts_that_a_request_can_carry() {
    let row = |line: usize, letters: usize| SheetRow {
        line,
        order: order([("id", Some(line.into())), ("name", Some("x".repeat(letters).into()))]),
    };
    let lengths = |rows: &[SheetRow]| parts(rows).iter().map(|part| part.len()).collect::<Vec<_>>();
    assert_eq!(lengths(&[]), [0; 0]);
    let short: Vec<_> = (0..=PART_ROWS).map(|n| row(n, 5)).collect();
    assert_eq!(lengths(&short), [PART_ROWS, 1]);
    let long: Vec<_> = (0..3).map(|n| row(n, PART_BYTES / 2)).collect();
    assert_eq!(lengths(&long), [1, 1, 1]);
    let error = FieldError::new("rows[1].email", "is none");
    let problem = at_row(&short[7..], error);
    assert_eq!((problem.line, &*problem.column), (8, "email"));
}

#[test]
fn h2_a_table_has_an_end() {
    let mut text = String::from("id\n");
    for n in 0..=100_000 {
        text.push_str(&format!("t{n}\n"));
    }
    let Err(said) = sheet::read(Register::Tenants, text.as_bytes()) else { panic!("it was taken") };
    assert!(said.contains("more than 100000 rows"), "{said}");
}
