#include "sum_options.hpp"

#include <fmt/format.h>

#include "compression_options.hpp"
#include "config/option_values.hpp"
#include "server_options.hpp"

namespace dtrain::config {
namespace {

KvStore known_store(const std::string& text) {
  if (const auto other = enum_value(kKvStoreAliases, text)) return *other;
  return *enum_value(kKvStoreNames, one_of(text, enum_texts(kKvStoreNames)));
}

}  // namespace

void bind_sums(OptionSet& set, JobOptions& options) {
  bind_servers(set, options);
  set.add_custom(
      "--kv-store", "local|device|dist_sync|dist_device_sync|dist_async",
      "MXNet's name for how gradients are added. All values but dist_async give the same bits, without servers. "
      "dist_async lets parameter servers update the weights with the gradients of each worker, which does not wait for "
      "the others; two runs then do not end in the same bits. If given, device and dist_device_sync select --transport "
      "nccl for workers on GPUs where NCCL is available. nccl is the same as device, dist_sync_device the same as "
      "dist_device_sync",
      [&options](const std::string& text) { options.kv_store = known_store(text); },
      [&options] { return enum_name(kKvStoreNames, options.kv_store); });
  add_choice(set, "--transport", options.transport, kTransportNames,
             "transport of gradients: tcp encrypts and authenticates every connection. nccl adds gradients on the "
             "GPUs, for workers with one GPU each; gloo is for comparison. These two do not encrypt or authenticate");
  set.add("--plain-data", options.plain_data,
          "send gradients and states between machines unencrypted, for closed networks; connections are still opened "
          "only with the job's token")
      .not_from_project = true;
  set.add("--connections", options.connections, "N",
          fmt::format(
              "TCP connections from each worker to each worker of another machine, for networks that limit the speed "
              "of one connection; fewer where a worker would have more than {} in all. 0 for {} on EC2, else 1",
              comm::kMostConnectionsOfRank, kConnectionsOnEc2),
          between(0, comm::kMostConnections));
  add_choice(
      set, "--gradient-dtype", options.gradient_dtype, kGradientDTypeNames,
      "number format in which gradients are added and sent; bfloat16 halves the traffic and changes the result's bits");
  bind_compression(set, options.compression);
  set.add_custom(
      "--move-shards", "on|off",
      "move logical shards from slow to fast workers as long as this makes steps faster; the result keeps its bits. On "
      "the CPU, with --elastic-batch fixed-global and more shards than workers",
      [&options](const std::string& text) { options.move_shards = yes_or_no(text, "on or off"); },
      [&options] { return std::string(options.move_shards ? "on" : "off"); });
}

}  // namespace dtrain::config
