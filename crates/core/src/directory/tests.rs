use crate::directory::*;

fn day(text: &str) -> Day {
    text.parse().unwrap()
}

fn staff(family: Option<&str>, given: Option<&str>) -> Staff {
    Staff {
        tenant: "office".into(),
        family_name: family.map(str::to_owned),
        given_name: given.map(str::to_owned),
        email: "taro@example.jp".parse().unwrap(),
        language: None,
        notifications: true,
        threshold_days: THRESHOLD_DAYS,
    }
}

#[test]
fn g4_a_staff_member_is_called_by_the_family_name_first() {
    for (family, given, name) in [
        (Some("山田"), Some("太郎"), Some("山田 太郎")),
        (Some("Yamada"), None, Some("Yamada")),
        (None, Some("Taro"), Some("Taro")),
        (None, None, None),
    ] {
        assert_eq!(staff(family, given).name().as_deref(), name);
    }
}

#[test]
fn g4_a_deadline_is_due_from_its_threshold_until_it_is_moved() {
    let check = |renewal: Option<&str>, assessment: Option<&str>, days: u16, expected: &[(&str, i32)]| {
        let subject = Subject {
            tenant: "office".into(),
            name: "Suzuki".into(),
            renewal_due_on: renewal.map(day),
            assessment_due_on: assessment.map(day),
        };
        let due = subject.due_within(day("2026-02-20"), days);
        let found: Vec<_> = due.iter().map(|due| (due.deadline.name(), due.days_left)).collect();
        assert_eq!(found, expected, "{renewal:?} {assessment:?} {days}");
    };
    check(None, None, 365, &[]);
    check(Some("2026-03-22"), None, 30, &[("renewal", 30)]);
    check(Some("2026-03-23"), None, 30, &[]);
    check(Some("2026-02-20"), None, 0, &[("renewal", 0)]);
    check(Some("2026-02-21"), None, 0, &[]);
    check(Some("2025-12-31"), Some("2026-02-25"), 5, &[("renewal", -51), ("assessment", 5)]);
    check(Some("9999-12-31"), Some("0001-01-01"), 365, &[("assessment", -739_666)]);
}

#[test]
fn g5_nobody_of_the_directory_prints_a_whole_address() {
    let member = Member::Staff(staff(None, None));
    assert!(!format!("{member:?}").contains("taro"));
    assert!(member.facts().contains("taro@example.jp"), "the store keeps it whole");
    assert_eq!(Member::read(Register::Staff, &member.facts()).unwrap(), member);
}

#[test]
fn h2_what_was_kept_by_an_earlier_version_is_read() {
    let tenant = Member::read(Register::Tenants, r#"{"tenant":null,"name":"A"}"#).unwrap();
    assert_eq!(tenant, Member::Tenant(Tenant { name: Some("A".into()), ..Tenant::default() }));
    let customer = Member::read(Register::Customers, r#"{"tenant":"a","name":null}"#).unwrap();
    assert_eq!(customer.tenant(), Some("a"));
    assert!(Member::read(Register::Staff, "{}").is_err(), "what is left of a deleted one is nobody");
}

#[test]
fn h2_every_register_names_its_fields_and_what_it_needs() {
    for register in Register::ALL {
        assert_eq!(Register::of(register.kind()), Some(register));
        assert!(register.needed().iter().all(|field| register.fields().contains(field)), "{register:?}");
    }
}

#[test]
fn h2_one_id_in_two_tenants_is_two_people_whatever_letters_it_has() {
    let texts = ["a", "b", "a/b", "a%2Fb", "a%252Fb", "%", "/", "//", "事業所/1"];
    let tenants = || std::iter::once(None).chain(texts.map(Some));
    let mut seen = std::collections::BTreeSet::new();
    for (tenant, id) in tenants().flat_map(|tenant| texts.map(|id| (tenant, id))) {
        let key = Register::Customers.key(tenant, id);
        assert_eq!(unscoped(&key.id), (tenant.map(str::to_owned), id));
        assert_eq!(own_id(&key), id);
        assert!(seen.insert(key), "{tenant:?} {id:?}");
    }
    assert_eq!(Register::Staff.key(Some("office"), "s1"), Key::new(Kind::Staff, "office/s1"));
    assert_eq!(Register::Customers.key(None, "c1"), Key::new(Kind::Customer, "/c1"));
    assert_eq!(Register::Tenants.key(Some("a"), "b/c"), Key::new(Kind::Tenant, "b/c"));
    assert_eq!(own_id(&Key::new(Kind::Tenant, "b/c")), "b/c");
}
