// Running a compiled product.
#pragma once

#include <vector>

#include "../onednn.hpp"
#include "../program.hpp"

namespace dtrain::backend::cpu {

// One primitive with memory objects of its own, so that threads can run it side by side.
class Call {
 public:
  // bias_channels is 0 without bias.
  Call(const Compiled& compiled, int bias_channels) : primitive_(compiled.primitive) {
    for (const Compiled::Argument& a : {compiled.first, compiled.second, compiled.weights}) add(a.name, a.layout);
    if (compiled.scratchpad > 0) {
      const auto bytes = static_cast<dnnl::memory::dim>(compiled.scratchpad);
      scratchpad_ = static_cast<int>(memories_.size());
      add(DNNL_ARG_SCRATCHPAD, {{bytes}, dnnl::memory::data_type::u8, dnnl::memory::format_tag::x});
    }
    if (bias_channels > 0) {
      bias_ = static_cast<int>(memories_.size());
      add(DNNL_ARG_BIAS, {{bias_channels}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x});
    }
  }

  void operator()(Worker& worker, void* first, void* second, void* weights, const float* bias = nullptr) {
    memories_[0].set_data_handle(first);
    memories_[1].set_data_handle(second);
    memories_[2].set_data_handle(weights);
    if (scratchpad_ >= 0) memories_[static_cast<std::size_t>(scratchpad_)].set_data_handle(worker.scratchpad.data());
    if (bias_ >= 0) memories_[static_cast<std::size_t>(bias_)].set_data_handle(const_cast<float*>(bias));
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), worker.stream.get(),
                                                   static_cast<int>(arguments_.size()), arguments_.data()),
                            "a oneDNN primitive failed");
  }

  std::size_t bytes(int memory) const { return memories_[static_cast<std::size_t>(memory)].get_desc().get_size(); }

 private:
  void add(int argument, const dnnl::memory::desc& desc) {
    memories_.emplace_back(desc, cpu_engine(), nullptr);
    arguments_.push_back({argument, memories_.back().get()});
  }

  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  int scratchpad_ = -1, bias_ = -1;
};

}  // namespace dtrain::backend::cpu
