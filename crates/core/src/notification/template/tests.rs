use super::*;

#[test]
fn g3_shipped_templates_render() {
    if let Err(flaws) = Templates::with(Vec::new()) {
        for flaw in flaws {
            eprintln!("{flaw}");
        }
        panic!();
    }
}
