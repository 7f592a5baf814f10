//! Which addresses belong to the public internet. A destination that resolves to any other could make Sekisho reach
//! into the operator's own network (C5), so anything not known to be public is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let reserved = matches!(
        (a, b, c),
        // "This network"; class E with broadcast; benchmarking; protocol assignments; 6to4 relays; carriers' NAT.
        (0 | 240..=255, ..) | (198, 18 | 19, _) | (192, 0, 0) | (192, 88, 99) | (100, 64..=127, _)
    );
    !(reserved
        || ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation())
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    if let Some(inner) = embedded_v4(ip) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = ip.segments();
    let reserved = matches!(
        (first, second),
        // Teredo with its neighbours (benchmarking, ORCHID), documentation.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x3fff, 0..=0xfff)
    );
    // Only 2000::/3 was ever given out: unique-local, link-local, site-local, discard and multicast lie outside.
    first & 0xe000 == 0x2000 && !reserved
}

/// The IPv4 address that some forms of IPv6 carry, and to which packets would go.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip.segments() {
        // Mapped; compatible (also :: and ::1, whose inner 0.0.0.x is not public); translated; NAT64; 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c5_only_addresses_of_the_public_internet_are_public() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2400:cb00::1",
            "2a00:1450:4001::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ];
        let not = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:0:808:808::f5ff:fffe",
            "2001:0:808:808::f7f7:f7f7",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "2002:a9fe:a9fe::",
            "3fff::1",
            "5f00::1",
            "4000::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for (list, expected) in [(&public[..], true), (&not[..], false)] {
            for text in list {
                assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
            }
        }
    }
}
