#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>

#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/all_reduce_baseline.hpp>

#include "gloo_context.hpp"

namespace dtrain::comm {
namespace {

constexpr std::chrono::seconds kDeadline(30);
using Context = std::shared_ptr<::gloo::Context>;

void run_new(const Context& context, std::span<float> values, ::gloo::AllreduceOptions::Algorithm algorithm) {
  void (*const add)(void*, const void*, const void*, std::size_t) = &::gloo::sum<float>;
  ::gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction(add);
  options.setTimeout(kDeadline);
  ::gloo::allreduce(options);
}

// Each algorithm has connections of its own: the older ones shrink the send buffers of those that they use to the size
// of their smallest message, which makes others crawl there.
class GlooBaseline final : public AllReduceBaseline {
 public:
  GlooBaseline(Communicator& mesh, std::string address, std::span<float> values)
      : mesh_(mesh), address_(std::move(address)), values_(values) {}

  void all_reduce(const std::string& algorithm) override try {
    using New = ::gloo::AllreduceOptions::Algorithm;
    if (algorithm == "ring") return run_new(context_of(algorithm), values_, New::RING);
    if (algorithm == "bcube") return run_new(context_of(algorithm), values_, New::BCUBE);
    std::unique_ptr<::gloo::Algorithm>& old = old_[algorithm];
    if (!old) old = make_old(algorithm);
    old->run();
  } catch (const std::exception& error) {
    throw PeerLost(std::string("Gloo: ") + error.what());
  }

 private:
  const Context& context_of(const std::string& algorithm) {
    Context& context = contexts_[algorithm];
    if (!context) context = connect_gloo(mesh_, address_, kDeadline);
    return context;
  }

  std::unique_ptr<::gloo::Algorithm> make_old(const std::string& algorithm) {
    const Context& context = context_of(algorithm);
    const std::vector<float*> buffers{values_.data()};
    const int count = static_cast<int>(values_.size());
    if (algorithm == "old ring") return std::make_unique<::gloo::AllreduceRing<float>>(context, buffers, count);
    if (algorithm == "ring chunked") {
      return std::make_unique<::gloo::AllreduceRingChunked<float>>(context, buffers, count);
    }
    DTRAIN_CHECK(algorithm == "halving doubling", "an algorithm of gloo_algorithms()");
    return std::make_unique<::gloo::AllreduceHalvingDoubling<float>>(context, buffers, count);
  }

  Communicator& mesh_;
  const std::string address_;
  const std::span<float> values_;
  std::map<std::string, Context> contexts_;
  std::map<std::string, std::unique_ptr<::gloo::Algorithm>> old_;
};

}  // namespace

std::vector<std::string> gloo_algorithms() { return {"ring", "bcube", "old ring", "ring chunked", "halving doubling"}; }

std::unique_ptr<AllReduceBaseline> make_gloo_baseline(Communicator& mesh, const std::string& address,
                                                      std::span<float> values) {
  return std::make_unique<GlooBaseline>(mesh, address, values);
}

}  // namespace dtrain::comm
