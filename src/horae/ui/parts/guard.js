// What goes wrong while something is drawn is said, with what to do; the rest of the page stays.

import { Component, html } from "../core/html.js";
import { link, route } from "../core/route.js";
import { Failure, Page } from "./basics.js";

/** `of` names what is guarded: when it changes, it is tried anew. */
export class Guard extends Component {
  constructor(props) {
    super(props);
    this.state = { error: null, of: props.of };
  }

  static getDerivedStateFromProps(props, state) {
    return props.of === state.of ? null : { error: null, of: props.of };
  }

  componentDidCatch(error) {
    console.warn("This could not be drawn.", error);
    this.setState({ error });
  }

  render({ children }, { error }) {
    if (!error) return children;
    const told = { detail: "This view could not be shown.", remedy: `Its address may hold something that it cannot read, or it meets something that it does not know (${error.message}).` };
    return html`<${Page} title="Not shown"><${Failure} error=${told} retry=${() => this.setState({ error: null })} />
      <p class="actions"><a href=${link(route.value.path)}>without its filters</a> <a href=${link("/")}>the overview</a> <a href="" onClick=${(event) => { event.preventDefault(); location.reload(); }}>load the page anew</a></p><//>`;
  }
}
