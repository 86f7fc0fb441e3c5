use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_bytes_pass_every_check(data in proptest::collection::vec(any::<u8>(), 0..200), first in 0..256_usize) {
        let mut data = data;
        if let Some(byte) = data.first_mut() {
            *byte = first as u8;
        }
        gre(&data);
        frames(&data);
        inner(&data);
        parcel(&data);
        coalesce(&data);
    }
}
