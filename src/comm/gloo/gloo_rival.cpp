#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>

#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/rival.hpp>

#include "gloo/gloo_context.hpp"

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

class GlooRival final : public Rival {
 public:
  GlooRival(Context context, std::span<float> values) : context_(std::move(context)), values_(values) {}

  void all_reduce(const std::string& algorithm) override try {
    using New = ::gloo::AllreduceOptions::Algorithm;
    if (algorithm == "ring") return run_new(context_, values_, New::RING);
    if (algorithm == "bcube") return run_new(context_, values_, New::BCUBE);
    std::unique_ptr<::gloo::Algorithm>& old = old_[algorithm];
    if (!old) old = make_old(algorithm);
    old->run();
  } catch (const std::exception& error) {
    throw PeerLost(std::string("Gloo: ") + error.what());
  }

 private:
  std::unique_ptr<::gloo::Algorithm> make_old(const std::string& algorithm) const {
    const std::vector<float*> buffers{values_.data()};
    const int count = static_cast<int>(values_.size());
    if (algorithm == "old ring") return std::make_unique<::gloo::AllreduceRing<float>>(context_, buffers, count);
    if (algorithm == "ring chunked") {
      return std::make_unique<::gloo::AllreduceRingChunked<float>>(context_, buffers, count);
    }
    DTRAIN_CHECK(algorithm == "halving doubling", "an algorithm of gloo_algorithms()");
    return std::make_unique<::gloo::AllreduceHalvingDoubling<float>>(context_, buffers, count);
  }

  const Context context_;
  const std::span<float> values_;
  std::map<std::string, std::unique_ptr<::gloo::Algorithm>> old_;
};

}  // namespace

std::vector<std::string> gloo_algorithms() { return {"ring", "bcube", "old ring", "ring chunked", "halving doubling"}; }

std::unique_ptr<Rival> make_gloo_rival(Communicator& mesh, const std::string& address, std::span<float> values) {
  return std::make_unique<GlooRival>(connect_gloo(mesh, address, kDeadline), values);
}

}  // namespace dtrain::comm
