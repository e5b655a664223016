//! A macro for configuration structs that can get new fields without breaking the callers' code.

/// Defines a configuration: a `non_exhaustive` struct with public fields, and for each field a
/// setter of the same name. Other crates cannot construct it by a literal; they start from a
/// default or a profile, and set what differs. A leading `const`, for a struct that is `Copy`,
/// makes the setters `const`. `as` gives a setter another name than its field.
///
/// ```
/// rexmit_core::config! {
///     const
///     /// How a lamp shines.
///     #[derive(Clone, Copy, Debug)]
///     pub struct LampConfig {
///         /// In lumen.
///         pub brightness: u32,
///         /// In kelvin.
///         pub colour: u32 as with_colour,
///     }
/// }
///
/// const LAMP: LampConfig = LampConfig { brightness: 800, colour: 2700 };
/// const DIM: LampConfig = LAMP.brightness(100).with_colour(2200);
/// assert_eq!((DIM.brightness, DIM.colour), (100, 2200));
/// ```
#[macro_export]
macro_rules! config {
    (
        const
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$meaning:meta])* pub $field:ident: $kind:ty $(as $setter:ident)?),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[non_exhaustive]
        pub struct $name { $($(#[$meaning])* pub $field: $kind),* }

        impl $name {
            $($crate::config! { @setter [const] $field: $kind $(as $setter)? })*
        }
    };
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$meaning:meta])* pub $field:ident: $kind:ty $(as $setter:ident)?),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[non_exhaustive]
        pub struct $name { $($(#[$meaning])* pub $field: $kind),* }

        impl $name {
            $($crate::config! { @setter [] $field: $kind $(as $setter)? })*
        }
    };
    (@setter $const:tt $field:ident: $kind:ty) => {
        $crate::config! { @setter $const $field: $kind as $field }
    };
    (@setter [$($const:ident)?] $field:ident: $kind:ty as $setter:ident) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
        #[must_use]
        pub $($const)? fn $setter(mut self, $field: $kind) -> Self {
            self.$field = $field;
            self
        }
    };
}
