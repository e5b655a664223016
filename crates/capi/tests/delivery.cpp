// A deadline keeps a late message; a lifetime abandons it.
#include "rexmit.hpp"

int main() {
    const auto late = rexmit::Delivery(1).within(100, 0.9);
    if (late.deadline_milliseconds != 100 || late.probability != 0.9 || late.lifetime != REXMIT_UNLIMITED)
        return 1;
    const auto abandoned = rexmit::Delivery(1).abandon_after(50);
    return abandoned.lifetime != 50 || abandoned.deadline_milliseconds != 0 ? 2 : 0;
}
