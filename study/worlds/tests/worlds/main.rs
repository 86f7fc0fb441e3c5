//! Worlds that judge a congestion control: how they are drawn, run, kept and judged.

mod drawing;
mod folder;
mod judging;
