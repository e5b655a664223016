//! Decides which requests are served: those of this page, and not those of other sites.
//!
//! A browser lets the page of any site send requests to a server of this machine. Such a request names its site in `Origin`
//! (RFC 6454 §7), unless the site's name was made to resolve to this machine (DNS rebinding): then `Host` has that name.
//! Addresses cannot be rebound, so that any address is allowed as `Host`.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The host name is not one of this server's.
    Host,
    /// The page of another site sent the request.
    Origin,
    /// The content type is one that a form can send without the browser asking first.
    ContentType,
}

impl Refusal {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Host => {
                "this host name is not allowed: use an IP address, localhost, or start with --allow-host NAME\n"
            }
            Self::Origin => "requests of other sites are refused\n",
            Self::ContentType => "the content type must be application/json or application/toml\n",
        }
    }
}

/// Whether a request with these headers is served; `names` are the host names allowed besides localhost.
pub(super) fn check(method: &Method, headers: &HeaderMap, names: &[String]) -> Result<(), Refusal> {
    let host = one(headers, &HOST).filter(|host| is_allowed(host, names));
    let host = host.ok_or(Refusal::Host)?;
    if headers.contains_key(ORIGIN) {
        let origin = one(headers, &ORIGIN).and_then(|origin| Some(origin.split_once("://")?.1));
        if origin != Some(host) {
            return Err(Refusal::Origin);
        }
    }
    let content_type = one(headers, &CONTENT_TYPE);
    let is_ours = matches!(content_type, Some("application/json" | "application/toml"));
    if method == Method::POST && !is_ours { Err(Refusal::ContentType) } else { Ok(()) }
}

/// The value of a header that occurs once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none());
    value?.to_str().ok()
}

fn is_allowed(host: &str, names: &[String]) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let mut allowed = names.iter().map(String::as_str).chain(["localhost"]);
    name == "[::1]" || allowed.any(|allowed| name.eq_ignore_ascii_case(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &Method, headers: &[(HeaderName, &str)]) -> Result<(), Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value.parse().unwrap());
        }
        check(method, &map, &["lab.example".into()])
    }

    #[test]
    fn the_host_is_an_address_or_an_allowed_name() {
        for host in [
            "127.0.0.1:8080",
            "192.0.2.1",
            "[::1]:8080",
            "[2001:db8::1]:80",
            "[::1]",
            "localhost:8080",
            "LocalHost",
            "lab.example",
            "lab.example:443",
        ] {
            assert_eq!(asked(&Method::GET, &[(HOST, host)]), Ok(()), "{host}");
        }
        for host in
            ["evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "", ":80"]
        {
            assert_eq!(asked(&Method::GET, &[(HOST, host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(asked(&Method::GET, &[]), Err(Refusal::Host));
        let twice = [(HOST, "127.0.0.1"), (HOST, "127.0.0.1")];
        assert_eq!(asked(&Method::GET, &twice), Err(Refusal::Host));
    }

    #[test]
    fn only_this_page_asks() {
        let post = |origin: &str, content_type: &str| {
            let headers = [(HOST, "127.0.0.1:80"), (ORIGIN, origin), (CONTENT_TYPE, content_type)];
            asked(&Method::POST, &headers)
        };
        const JSON: &str = "application/json";
        assert_eq!(post("http://127.0.0.1:80", JSON), Ok(()));
        assert_eq!(post("http://127.0.0.1:80", "application/toml"), Ok(()));
        for origin in ["http://evil.example", "http://127.0.0.1:81", "http://localhost:80", "null"]
        {
            assert_eq!(post(origin, JSON), Err(Refusal::Origin), "{origin}");
        }
        assert_eq!(post("http://127.0.0.1:80", "text/plain"), Err(Refusal::ContentType));
        assert_eq!(asked(&Method::POST, &[(HOST, "[::1]:80")]), Err(Refusal::ContentType));
        // A program that is no browser has no origin.
        assert_eq!(asked(&Method::POST, &[(HOST, "[::1]:80"), (CONTENT_TYPE, JSON)]), Ok(()));
    }
}
