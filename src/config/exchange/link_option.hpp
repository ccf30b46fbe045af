// A link of a simulated network, as people write it: "10gbit,50us".
#pragma once

#include <optional>
#include <string>

#include <dtrain/comm/simulation.hpp>

#include "config/option_set.hpp"

namespace dtrain::config {

// Bandwidth in bits a second (kbit, mbit or gbit, as tc writes them) and latency (us, ms or s).
comm::LinkModel link_from(const std::string& text);
std::string link_text(const comm::LinkModel& link);

Option& add_link(OptionSet& set, std::string flags, std::optional<comm::LinkModel>& field, std::string help);

}  // namespace dtrain::config
