// Prices of a cluster's machines, as a tag of its security group: every machine that keeps its budget counts with the
// same ones, also the head, which has no price list of its own.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/prices.hpp>
#include <dtrain/net/aws_calls.hpp>

namespace dtrain::cluster {

namespace tag {
inline constexpr const char* kPrices = "dtrain:prices";  // on the security group: prices_text()
}  // namespace tag

// "c5.large=0.085 g5.xlarge=1.006": the known prices of these types on demand, US dollars an hour; of the first of them
// that a tag has room for.
std::string prices_text(const std::vector<std::string>& types, const PriceList& prices);

// These prices, with those of the tag in their place. Words of the tag that are no prices count for nothing.
PriceList with_tagged_prices(const Fleet& fleet, PriceList prices);

// The text of the tag for these types and those of the fleet's machines. Prices that AWS published, in `own`, replace
// those of the tag; dtrain's own table does not.
std::string prices_to_tag(const Fleet& fleet, std::vector<std::string> types, const PriceList& own);

// Writes prices_to_tag() where the tag differs. Throws what AwsCalls throws.
void write_prices(net::AwsCalls& aws, const Fleet& fleet, const std::vector<std::string>& types, const PriceList& own);

}  // namespace dtrain::cluster
