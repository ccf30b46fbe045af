// On-demand prices of a region: from AWS's Price List file if the user fetched it, else a table that dtrain carries.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::cluster {

struct PriceList {
  std::string region{};                    // whose prices these are
  std::string published{};                 // date of AWS's file, "2026-11-20"; empty: dtrain's own table
  std::map<std::string, double> hourly{};  // US dollars an hour by type: Linux, shared tenancy, on demand; above 0
  // US dollars a month for a gigabyte of a gp3 disk, as nodes have; nullopt: unknown.
  std::optional<double> disk_gigabyte_month{};

  std::optional<double> of(const std::string& type) const;  // nullopt: unknown
  std::string text() const;                                 // "on-demand prices of us-east-1, published 2026-11-20"
};

// dtrain's own table, of us-east-1. It lives as long as the program.
const PriceList& built_in_prices();

// Reads a Price List file of EC2 (CSV) line by line. Throws DataError naming `source` for a file without the columns
// of prices, or without any price.
class PriceListReader {
 public:
  PriceListReader(std::string region, std::string source) : list_{.region = std::move(region)}, source_(source) {}
  void line(std::string_view text);
  PriceList finish();

 private:
  void read_heading(const std::vector<std::string>& names);
  void read_disk(const std::vector<std::string>& row);
  const std::string& field(const std::vector<std::string>& row, std::size_t column) const;

  PriceList list_;
  std::string source_;
  std::vector<std::size_t> columns_;  // of the fields that are read; empty: the heading has not come yet
};

// The prices that fetch_prices() stored for the region; those of built_in_prices() if there are none, or if the stored
// file is damaged.
PriceList known_prices(const std::string& region);
// Downloads the region's Price List file (hundreds of megabytes) and stores its prices in the user's cache folder.
// Throws UsageError for a region whose prices are not in US dollars, and whatever net::download and PriceListReader
// throw.
PriceList fetch_prices(const std::string& region, const net::AwsSettings& settings,
                       std::function<void(std::uint64_t done, std::uint64_t total)> progress);

}  // namespace dtrain::cluster
