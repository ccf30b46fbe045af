// What ranks send each other when they enter a reduction, before its floats move.
#pragma once

#include <string>
#include <string_view>

#include <dtrain/comm/communicator.hpp>

#include "frames.hpp"

namespace dtrain::comm {

ReductionBegin begin_of(const ReductionShape& shape, const Note& note);
Note note_of(const ReductionBegin& begin);
// Throw PeerLost that names the peer: for bytes that are no begin, and for another shape.
ReductionBegin begin_from(std::string_view bytes, const std::string& peer);
void check_same_shape(const ReductionBegin& mine, const ReductionBegin& theirs, const std::string& peer);

}  // namespace dtrain::comm
