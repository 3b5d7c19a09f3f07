//! Rules written in a small script language.
