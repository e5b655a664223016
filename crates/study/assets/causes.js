// Why a packet carries a data unit: one row per cause of rexmit_core::trace::SendCause, by its name in
// JSON. A test compares the names with the enum.

/**
 * `column`: heading in the table of results, `isRare` if it is left out where it never happened.
 * `text`: the mark's meaning. `short`: within a sentence. `shape`: outline around the origin, the same
 * on the canvas and in the key.
 */
const CAUSES = {
  new: { colour: "ink", text: "first transmission", shape: "M-2 -6 L2 -6 L2 6 L-2 6 Z" },
  timeout: { colour: "timeout", column: "timeout", text: "retransmission: timeout", short: "timeout",
    shape: "M0 -7 L7 5.5 L-7 5.5 Z" },
  fast_retransmit: { colour: "fast", column: "fast rtx", text: "retransmission: fast retransmit", short: "fast retransmit",
    shape: "M0 -7 L7 0 L0 7 L-7 0 Z" },
  probe: { colour: "probe", column: "probe timer", isRare: true, text: "retransmission: probe timer", short: "probe timer",
    shape: "M-6 -6 L6 -6 L0 6 Z" },
  bundled: { colour: "fast", column: "bundled", isRare: true, text: "retransmission: bundled with another", short: "bundled",
    shape: "M-7 -2.5 L7 -2.5 L7 2.5 L-7 2.5 Z" },
  window_probe: { colour: "probe", column: "window probe", isRare: true, text: "retransmission: window probe", short: "window probe",
    shape: "M-5 -5 L5 -5 L5 5 L-5 5 Z" },
  early: { colour: "fast", column: "early", isRare: true, text: "retransmission: Early Fast Retransmit", short: "early",
    shape: "M0 7 L7 -5.5 L-7 -5.5 Z" },
  redundant: { colour: "ack", column: "redundant copies", isRare: true, text: "redundant copy", short: "redundant copy",
    shape: "M-7 -1.5 L7 -1.5 L7 1.5 L-7 1.5 Z" },
};

/** The look of a cause; one of a newer version is drawn as what it is called. */
const causeLook = (name) => CAUSES[name] ?? { colour: "probe", text: name, short: name, shape: CAUSES.window_probe.shape };
const DELIVERY_SHAPE = "M-5 0 A5 5 0 1 0 5 0 A5 5 0 1 0 -5 0 Z";
